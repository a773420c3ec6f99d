//! Lists of origins in one text.

use crate::schema::Value;
use crate::schema::kind::{AnyText, NameText, Scalar};

/// Origins with commas between, each a name; as many as there must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origins;

impl Scalar for Origins {
    type Output = String;
    fn allowed(&self) -> String {
        "origins of 1 to 255 bytes each, without control characters and with commas between"
            .to_owned()
    }
    fn parse(&self, value: &Value) -> Result<String, String> {
        let list = AnyText.parse(value)?;
        let parts = list
            .split(',')
            .zip(1..)
            .filter(|(part, _number)| !part.trim().is_empty());
        for (part, number) in parts {
            let name = Value::Text(part.to_owned());
            NameText
                .parse(&name)
                .map_err(|hint| format!("origin {number}: {hint}"))?;
        }
        Ok(list)
    }
    fn written(&self, value: &String) -> String {
        NameText.written(value)
    }
}
