//! Which configuration is asked for, and what the command line says over it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Config, LoadedConfig};
use crate::schema::fault::Fault;
use crate::schema::source::Source;

/// A configuration as the command line asks for it. Loaded again, it is the same question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigRequest {
    /// The file; the defaults without one.
    pub file: Option<PathBuf>,
    /// Directory of the rules where the file names none.
    pub usual_rules_dir: Option<PathBuf>,
    /// Directory of the rules, whatever the file names.
    pub rules_dir: Option<PathBuf>,
    /// Where metrics are served over TCP, whatever the file says.
    pub metrics: Option<MetricsListen>,
}

/// Where metrics are served over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsListen {
    /// Nowhere.
    Off,
    /// At an address of this machine.
    At(SocketAddr),
}

impl FromStr for MetricsListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let address: Option<SocketAddr> = text.parse().ok();
        address
            .filter(|address| address.ip().is_loopback())
            .map(Self::At)
            .ok_or_else(|| {
                "allowed are a loopback address with a port, such as 127.0.0.1:9470 or [::1]:9470, and off"
                    .to_owned()
            })
    }
}

impl ConfigRequest {
    /// The configuration of a file, or the defaults, and nothing over it.
    pub fn of(file: Option<PathBuf>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// Every fault of the file.
    pub fn load(&self) -> Result<LoadedConfig, Vec<Fault>> {
        let loaded = Config::load_over(self.file.as_deref(), self.usual());
        loaded.map(|loaded| self.over(loaded))
    }

    /// What files say that were read before from the same place; `None` if they are of another one.
    ///
    /// # Errors
    /// Every fault of the files.
    pub fn of_kept(&self, files: Vec<Source>) -> Option<Result<LoadedConfig, Vec<Fault>>> {
        let path = self.file.as_deref()?;
        if **files.first()?.name() != *path.display().to_string() {
            return None;
        }
        let loaded = Config::of_files(path, files, &self.usual());
        Some(loaded.map(|loaded| self.over(loaded)))
    }

    /// What holds without the file.
    pub fn without_file(&self) -> LoadedConfig {
        self.over(LoadedConfig {
            config: Box::new(self.usual()),
            ..LoadedConfig::default()
        })
    }

    fn usual(&self) -> Config {
        let mut usual = Config::default();
        if let Some(dir) = &self.usual_rules_dir {
            usual.rules.dir.clone_from(dir);
        }
        usual
    }

    /// Lets the command line say its word over what was read.
    fn over(&self, mut loaded: LoadedConfig) -> LoadedConfig {
        let config = &mut loaded.config;
        if let Some(dir) = &self.rules_dir {
            config.rules.dir.clone_from(dir);
        }
        match self.metrics {
            None => {}
            Some(MetricsListen::Off) => config.http.metrics_enabled = false,
            Some(MetricsListen::At(address)) => {
                config.http.metrics_enabled = true;
                config.http.metrics_listen = address;
            }
        }
        loaded
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn field_o12_what_the_command_line_says_comes_before_the_file_and_the_file_before_what_is_usual()
     {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("c.toml");
        std::fs::write(
            &file,
            "[rules]\ndir = \"/of/file\"\n[http]\nmetrics_enabled = false\n",
        )
        .unwrap();
        let mut given = ConfigRequest {
            usual_rules_dir: Some("/usual".into()),
            ..ConfigRequest::default()
        };
        let rules = |given: &ConfigRequest| given.load().unwrap().config.rules.dir;
        assert_eq!(rules(&given), Path::new("/usual"));
        given.file = Some(file);
        assert_eq!(rules(&given), Path::new("/of/file"));
        given.rules_dir = Some("/said".into());
        assert_eq!(rules(&given), Path::new("/said"));
        assert!(!given.load().unwrap().config.http.metrics_enabled);
        given.metrics = "[::1]:9470".parse().ok();
        let http = given.load().unwrap().config.http;
        assert!(http.metrics_enabled);
        assert_eq!(http.metrics_listen, "[::1]:9470".parse().unwrap());
        given.metrics = "off".parse().ok();
        assert!(!given.load().unwrap().config.http.metrics_enabled);
    }

    #[test]
    fn metrics_are_for_this_machine_alone_whoever_says_where() {
        for wrong in ["0.0.0.0:9469", "9469", "localhost:9469", "on", ""] {
            let refused = wrong.parse::<MetricsListen>();
            assert!(refused.is_err_and(|text| text.contains("off")), "{wrong}");
        }
    }
}
