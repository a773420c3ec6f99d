//! Values of another type than an option has, as fastjson turns them: `"1"`, `1.0` and `"true"` for 1 and true.

use super::{Scalar, Value};

/// A value that was turned into the type of its option, and what is lost by it, if anything.
type Turned<T> = (T, Option<&'static str>);

/// Reads a value of any type that Sentinel's readers would turn into that of the option.
///
/// # Errors
/// A hint, as [`Scalar::parse`].
pub(super) fn parse<K: Scalar>(kind: &K, value: &Value) -> Result<Turned<K::Output>, String> {
    let own = match kind.parse(value) {
        Ok(output) => return Ok((output, None)),
        Err(hint) => hint,
    };
    // A number out of range comes into it by no cut.
    let takes_fractions = kind.parse(&Value::Number(0.5)).is_ok();
    let others = others(value);
    let found = others
        .iter()
        .filter(|(_other, lost)| lost.is_none() || !takes_fractions)
        .find_map(|(other, lost)| Some((kind.parse(other).ok()?, *lost)));
    if let Some(found) = found {
        return Ok(found);
    }
    // The quotes are not what is wrong with a number in quotes.
    let hint = match (value, others.first()) {
        (Value::Text(_), Some((number, _))) => kind.parse(number).err().unwrap_or_default(),
        _ => own,
    };
    Err(hint)
}

/// What a value may be turned into. An option takes one type, so the order does not count.
fn others(value: &Value) -> Vec<(Value, Option<&'static str>)> {
    match value {
        Value::Flag(flag) => vec![(Value::Text(flag.to_string()), None)],
        Value::Integer(number) => {
            let flag = u8::try_from(*number).ok().filter(|number| *number <= 1);
            let flag = flag.map(|number| (Value::Flag(number == 1), None));
            let text = (Value::Text(number.to_string()), None);
            flag.into_iter().chain([text]).collect()
        }
        Value::Number(number) => {
            let whole = whole(*number).map(|whole| {
                let lost = (number.fract() != 0.0).then_some("the fraction does not count");
                (Value::Integer(whole), lost)
            });
            let text = (Value::Text(format!("{number:?}")), None);
            whole.into_iter().chain([text]).collect()
        }
        Value::Text(text) => of_text(text),
        Value::List(_) | Value::Table(_) | Value::Null | Value::Other(_) => Vec::new(),
    }
}

/// The whole part of a number that 64 bits hold.
fn whole(number: f64) -> Option<i64> {
    let end = 2_f64.powi(63);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fraction is cut on purpose, and the range is checked"
    )]
    (-end..end).contains(&number).then_some(number as i64)
}

fn of_text(text: &str) -> Vec<(Value, Option<&'static str>)> {
    let flag = match text {
        "true" | "TRUE" | "True" | "1" | "Y" | "T" => Some(true),
        "false" | "FALSE" | "False" | "0" | "N" | "F" => Some(false),
        _ => None,
    };
    // Thousands may have commas between them.
    let digits = text.trim().replace(',', "");
    let of_a_number = digits.starts_with(|one: char| one.is_ascii_digit() || "+-.".contains(one));
    let number = digits.parse().ok().filter(|_: &f64| of_a_number);
    // A fraction is no whole number, unless it is zero.
    let integer = digits.trim_end_matches('0').strip_suffix('.');
    let integer: Option<i64> = integer.unwrap_or(&digits).parse().ok();
    let (integer, number) = (integer.map(Value::Integer), number.map(Value::Number));
    let all = [integer, number, flag.map(Value::Flag)];
    all.into_iter().flatten().map(|one| (one, None)).collect()
}
