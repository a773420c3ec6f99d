//! Who calls, as the headers of a request say.

use http::HeaderMap;

/// Headers that name the caller, in the order they are looked for: ours, and Dubbo's name for the same.
const HEADERS: [&str; 2] = ["x-tidegate-origin", "dubboapplication"];

/// The member of W3C `baggage` that names the caller.
const MEMBER: &str = "tidegate.origin";

/// Who calls, for [`EntryRequest::origin`](crate::EntryRequest::origin); empty if the headers do not say.
///
/// It is named by the header `x-tidegate-origin`, Dubbo's `dubboApplication`, or the member `tidegate.origin` of W3C
/// `baggage`. gRPC's metadata are headers too.
///
/// Whoever sends a request says what stands there. Rules that look at origins are for callers that are trusted to say who
/// they are, or behind a proxy that says it for them.
pub fn origin_of(headers: &HeaderMap) -> &str {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let named = HEADERS.into_iter().find_map(text);
    let in_baggage = || {
        headers
            .get_all("baggage")
            .iter()
            .find_map(|value| member(value.to_str().ok()?))
    };
    named.or_else(in_baggage).unwrap_or_default().trim()
}

/// The value of our member in a list of `key=value;properties`.
fn member(baggage: &str) -> Option<&str> {
    baggage.split(',').find_map(|entry| {
        let (pair, _properties) = entry.split_once(';').unwrap_or((entry, ""));
        let (key, value) = pair.split_once('=')?;
        (key.trim() == MEMBER).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn origin(headers: &[(&'static str, &'static str)]) -> String {
        let pairs = headers.iter().map(|(name, value)| {
            let name = name.parse().unwrap();
            (name, HeaderValue::from_static(value))
        });
        origin_of(&pairs.collect()).to_owned()
    }

    #[test]
    fn a_caller_is_named_by_a_header_or_by_baggage_in_this_order() {
        let baggage = ("baggage", "a=b, tidegate.origin=cart;ttl=1,c=d");
        assert_eq!(origin(&[]), "");
        assert_eq!(origin(&[baggage]), "cart");
        assert_eq!(origin(&[("dubboApplication", "stock"), baggage]), "stock");
        assert_eq!(origin(&[baggage, ("x-tidegate-origin", " shop ")]), "shop");
        assert_eq!(origin(&[("baggage", "tidegate.origin")]), "");
    }
}
