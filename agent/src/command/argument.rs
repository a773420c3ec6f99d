//! An argument of a request as the command line gives it.

use tidegate_abi::argument::{
    Arg, ArgumentKind, boolean_hash, float_hash, integer_hash, natural_hash, text_hash,
};

/// An argument, hashed; `None` is one that is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Argument(Option<u64>);

impl Argument {
    /// As the gate is asked with it.
    pub(super) fn as_arg(&self) -> Arg<'_> {
        self.0.map_or(Arg::None, Arg::One)
    }
}

/// Reads `VALUE` or `TYPE:VALUE`. What stands before a colon and is no type is part of the value.
///
/// # Errors
/// The value is none of its type.
pub(super) fn parse(given: &str) -> Result<Argument, String> {
    let typed = given.split_once(':');
    let hash = typed.and_then(|(kind, value)| typed_hash(kind, value));
    hash.unwrap_or_else(|| Ok(Some(untyped_hash(given))))
        .map(Argument)
}

fn untyped_hash(text: &str) -> u64 {
    let number: Result<i64, _> = text.parse();
    number.map_or_else(|_text| text_hash(ArgumentKind::Text, text), natural_hash)
}

/// The hash of a value of a type; the outer `None` where there is no such type.
fn typed_hash(kind: &str, value: &str) -> Option<Result<Option<u64>, String>> {
    let whole = |kind, least: i64, most: i64| {
        let number = value.parse().ok();
        let fitting = number.filter(|number| (least..=most).contains(number));
        let hash = fitting.map(|number| Some(integer_hash(kind, number)));
        hash.ok_or_else(|| format!("allowed are whole numbers from {least} to {most}"))
    };
    let double = || {
        let finite = value.parse().ok().filter(|number: &f64| number.is_finite());
        finite.ok_or_else(|| "allowed are numbers, such as 1.5".to_owned())
    };
    let single = || {
        let finite = value.parse().ok().filter(|number: &f32| number.is_finite());
        finite.ok_or_else(|| "allowed are numbers of 32 bits, such as 1.5".to_owned())
    };
    Some(match kind {
        "text" => Ok(Some(text_hash(ArgumentKind::Text, value))),
        "int" => whole(ArgumentKind::Int, i32::MIN.into(), i32::MAX.into()),
        "long" => whole(ArgumentKind::Long, i64::MIN, i64::MAX),
        "short" => whole(ArgumentKind::Short, i16::MIN.into(), i16::MAX.into()),
        "byte" => whole(ArgumentKind::Byte, i8::MIN.into(), i8::MAX.into()),
        "double" => double().map(|number| Some(float_hash(ArgumentKind::Double, number))),
        "float" => single().map(|number| Some(float_hash(ArgumentKind::Float, number.into()))),
        "boolean" => match value {
            "true" => Ok(Some(boolean_hash(true))),
            "false" => Ok(Some(boolean_hash(false))),
            _ => Err("allowed are true and false".to_owned()),
        },
        "char" if value.chars().count() == 1 => Ok(Some(text_hash(ArgumentKind::Char, value))),
        "char" => Err("allowed is one character".to_owned()),
        "none" if value.is_empty() => Ok(None),
        "none" => Err("nothing may stand behind `none:`".to_owned()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(given: &str) -> Option<u64> {
        parse(given).expect("it is an argument").0
    }

    #[test]
    fn field_r5_each_type_can_be_named_and_what_names_none_is_a_number_or_a_text() {
        for (given, expected) in [
            ("7", natural_hash(7)),
            (
                "3000000000",
                integer_hash(ArgumentKind::Long, 3_000_000_000),
            ),
            ("7.5", text_hash(ArgumentKind::Text, "7.5")),
            ("a:b", text_hash(ArgumentKind::Text, "a:b")),
            ("text:7", text_hash(ArgumentKind::Text, "7")),
            ("text:int:7", text_hash(ArgumentKind::Text, "int:7")),
            ("int:-7", integer_hash(ArgumentKind::Int, -7)),
            ("long:7", integer_hash(ArgumentKind::Long, 7)),
            ("short:7", integer_hash(ArgumentKind::Short, 7)),
            ("byte:7", integer_hash(ArgumentKind::Byte, 7)),
            ("double:7.5", float_hash(ArgumentKind::Double, 7.5)),
            ("float:7.5", float_hash(ArgumentKind::Float, 7.5)),
            ("boolean:true", boolean_hash(true)),
            ("char:\u{e4}", text_hash(ArgumentKind::Char, "\u{e4}")),
        ] {
            assert_eq!(hash(given), Some(expected), "{given}");
        }
        assert_eq!(hash("none:"), None);
    }

    #[test]
    fn field_r5_a_value_that_is_none_of_its_type_is_refused_with_what_is_allowed() {
        for given in [
            "int:x",
            "int:3000000000",
            "byte:128",
            "short:",
            "double:nan",
            "float:1e39",
            "boolean:yes",
            "char:ab",
            "char:",
            "none:x",
        ] {
            let refused = parse(given).expect_err(given);
            assert!(
                refused.contains("allowed") || refused.contains("may"),
                "{refused}"
            );
        }
    }
}
