//! Texts with a meaning: names, paths, addresses, file modes.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use tidegate_abi::{NameFault, check_name};

use super::{Scalar, Value, quoted};

fn text(value: &Value) -> Result<&str, String> {
    value
        .text()
        .ok_or_else(|| "write a text in quotes".to_owned())
}

/// A name that is neither empty nor longer than 255 bytes and has no control characters.
#[derive(Debug, Clone, Copy)]
pub struct NameText;

impl Scalar for NameText {
    type Output = String;
    fn allowed(&self) -> String {
        "a text of 1 to 255 bytes without control characters".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<String, String> {
        let name = check_name(text(value)?.as_bytes()).map_err(|fault| {
            let hint = match fault {
                NameFault::Empty => "it is empty",
                NameFault::TooLong => "it is too long",
                NameFault::NotUtf8 => "it is not UTF-8",
                NameFault::Control => "it holds a control character",
            };
            hint.to_owned()
        })?;
        if name.trim().is_empty() {
            return Err("it is blank".to_owned());
        }
        Ok(name.to_owned())
    }
    fn written(&self, value: &String) -> String {
        quoted(value)
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "minLength": 1})
    }
}

/// Any text at all.
#[derive(Debug, Clone, Copy)]
pub struct AnyText;

impl Scalar for AnyText {
    type Output = String;
    fn allowed(&self) -> String {
        "a text".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<String, String> {
        text(value).map(str::to_owned)
    }
    fn written(&self, value: &String) -> String {
        quoted(value)
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string"})
    }
}

/// The path of a file or directory.
#[derive(Debug, Clone, Copy)]
pub struct Location;

impl Scalar for Location {
    type Output = PathBuf;
    fn allowed(&self) -> String {
        "a path, absolute or from the directory of this file".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<PathBuf, String> {
        let path = text(value)?;
        if path.is_empty() || path.contains('\0') {
            return Err("it is empty or holds a zero byte".to_owned());
        }
        Ok(PathBuf::from(path))
    }
    fn written(&self, value: &PathBuf) -> String {
        quoted(&value.display().to_string())
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "minLength": 1})
    }
}

/// A TCP address and port.
#[derive(Debug, Clone, Copy)]
pub struct Address;

impl Scalar for Address {
    type Output = SocketAddr;
    fn allowed(&self) -> String {
        "an IP address and a port, such as \"127.0.0.1:9469\" or \"[::1]:9469\"".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<SocketAddr, String> {
        text(value)?.parse().map_err(|_not_one| String::new())
    }
    fn written(&self, value: &SocketAddr) -> String {
        quoted(&value.to_string())
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "pattern": ":[0-9]+$"})
    }
}

/// Permissions of a file, in octal digits.
#[derive(Debug, Clone, Copy)]
pub struct FileMode;

impl Scalar for FileMode {
    type Output = u32;
    fn allowed(&self) -> String {
        "octal digits in quotes from \"0600\" to \"0777\"".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<u32, String> {
        let digits = text(value)?;
        let octal = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let mode = u32::from_str_radix(digits, 8).ok().filter(|_| octal);
        match mode {
            Some(mode) if mode > 0o777 => Err(String::new()),
            Some(mode) if mode & 0o600 != 0o600 => {
                Err("the owner must be able to read and write".to_owned())
            }
            Some(mode) => Ok(mode),
            None => Err(String::new()),
        }
    }
    fn written(&self, value: &u32) -> String {
        quoted(&format!("{value:04o}"))
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "pattern": "^0?[67][0-7][0-7]$"})
    }
}
