//! The path of a cgroup as an option.

use super::schema::Value;
use super::schema::kind::{AnyText, Scalar};
use crate::signal::GroupPattern;

/// The path of a cgroup below the controller's mount; patterns are allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct CgroupPath;

impl Scalar for CgroupPath {
    type Output = String;
    fn allowed(&self) -> String {
        "a path that begins with / below the cpu controller's mount; * and ? match names".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<String, String> {
        let path = AnyText.parse(value)?;
        if path.contains(char::is_control) {
            return Err("holds a control character; no group's name does".to_owned());
        }
        if path.contains(['[', ']']) {
            return Err("only * and ? match names; [ and ] cannot stand here".to_owned());
        }
        GroupPattern::new(&path).map_err(|fault| fault.to_string())?;
        Ok(path)
    }
    fn written(&self, value: &String) -> String {
        AnyText.written(value)
    }
}
