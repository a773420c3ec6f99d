//! Where things are in the surroundings of users, services and root.

use super::*;

fn surroundings(root: bool, variables: &[(&str, &Path)]) -> Surroundings {
    Surroundings::of(root, |name| {
        let found = variables.iter().find(|(own, _value)| *own == name);
        found.map(|(_own, value)| value.as_os_str().to_owned())
    })
}

fn root(variables: &[(&str, &str)]) -> Surroundings {
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (*name, Path::new(value)))
        .collect();
    surroundings(true, &variables)
}

fn user(variables: &[(&str, &str)]) -> Surroundings {
    Surroundings {
        root: false,
        ..root(variables)
    }
}

const USER: (&str, &str) = ("XDG_RUNTIME_DIR", "/run/user/7");
const NAMED: (&str, &str) = ("TIDEGATE_RUNTIME_DIR", "/named");
const UNIT: [(&str, &str); 3] = [
    ("RUNTIME_DIRECTORY", "/run/tidegate"),
    ("STATE_DIRECTORY", "/var/lib/private/tidegate"),
    ("CONFIGURATION_DIRECTORY", "/etc/tidegate:/etc/other"),
];

fn serves(surroundings: &Surroundings, given: Option<&str>) -> PathBuf {
    surroundings.to_serve(given.map(Path::new)).unwrap()
}

#[test]
fn field_o1_an_agent_serves_where_it_is_told_then_by_the_service_manager_then_by_user() {
    let all = [&UNIT[..], &[USER, NAMED]].concat();
    assert_eq!(serves(&user(&all), Some("x")), Path::new("x"));
    assert_eq!(serves(&user(&all), None), Path::new("/named"));
    assert_eq!(serves(&user(&UNIT), None), Path::new("/run/tidegate"));
    assert_eq!(
        serves(&user(&[USER]), None),
        Path::new("/run/user/7/tidegate")
    );
    assert_eq!(serves(&root(&[USER]), None), Path::new("/run/tidegate"));
    let two = [("RUNTIME_DIRECTORY", "/run/a:/run/b")];
    assert_eq!(serves(&root(&two), None), Path::new("/run/a"));
}

#[test]
fn where_no_agent_is_every_place_that_was_looked_at_is_named() {
    let error = NoAnswer::Connect {
        path: "/run/tidegate/http.sock".into(),
        error: ErrorKind::NotFound.into(),
    };
    let told = |surroundings: &Surroundings, given: Option<&Path>| {
        let Failure::Failed(text) = surroundings.unanswered(given, &error) else {
            panic!("a failure");
        };
        text
    };
    let both = told(&user(&[USER]), None);
    assert!(
        both.contains("/run/tidegate or /run/user/7/tidegate: "),
        "{both}"
    );
    let one = told(&user(&[]), None);
    assert!(
        one.contains("/run/tidegate (XDG_RUNTIME_DIR is not set"),
        "{one}"
    );
    let named = told(&user(&[USER, NAMED]), None);
    assert!(!named.contains("/run/user/7"), "{named}");
    let given = told(&user(&[USER]), Some(Path::new("/x")));
    assert!(!given.contains("/run/user/7"), "{given}");
}

#[test]
fn without_any_directory_the_error_says_what_to_do() {
    for directory in ["relative", ""] {
        for variable in ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "OTHER"] {
            let user = user(&[(variable, directory)]);
            let Err(Failure::Invalid(text)) = user.to_serve(None) else {
                panic!("no directory can be chosen");
            };
            assert!(text.contains("--runtime-dir"), "{text}");
        }
    }
}

#[test]
fn field_o1_what_lasts_stays_where_the_service_manager_says_wherever_the_sockets_are() {
    let (state, sockets) = (Path::new("/s"), Path::new("/r"));
    let kept = |surroundings: &Surroundings, given, sockets| surroundings.state(given, sockets);
    let unit = user(&UNIT);
    let managed = Path::new("/var/lib/private/tidegate");
    assert_eq!(kept(&unit, None, None), managed);
    assert_eq!(kept(&unit, None, Some(sockets)), managed);
    assert_eq!(kept(&unit, Some(state), Some(sockets)), state);
    assert_eq!(kept(&root(&[]), None, None), Path::new("/var/lib/tidegate"));
    assert_eq!(kept(&root(&[]), None, Some(sockets)), sockets);
    assert_eq!(kept(&root(&[NAMED]), None, None), Path::new("/named"));
    assert_eq!(
        kept(&user(&[USER]), None, None),
        Path::new("/run/user/7/tidegate")
    );
}

#[test]
fn field_o12_commands_ask_where_they_are_told_then_the_first_agent_that_answers() {
    let directory = tempfile::tempdir().unwrap();
    let user = surroundings(false, &[("XDG_RUNTIME_DIR", directory.path())]);
    assert_eq!(user.to_ask(None), Path::new("/run/tidegate"));
    let own = directory.path().join("tidegate");
    std::fs::create_dir(&own).unwrap();
    let socket = own.join(place::HTTP_SOCKET);
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    // A machine that runs the tests may have an agent, which comes first.
    let system = Path::new("/run/tidegate");
    let first = if answers(system) { system } else { &own };
    assert_eq!(user.to_ask(None), first);
    assert_eq!(user.to_ask(Some(Path::new("x"))), Path::new("x"));
    let named = root(&[NAMED]);
    assert_eq!(named.to_ask(None), Path::new("/named"));
}

#[test]
fn field_o12_a_user_has_a_configuration_and_rules_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("tidegate");
    std::fs::create_dir_all(own.join("rules.d")).unwrap();
    std::fs::write(own.join("tidegate.toml"), "").unwrap();
    let variables = [("XDG_CONFIG_HOME", directory.path())];
    let given = surroundings(false, &variables).config(None, None);
    assert_eq!(given.file, Some(own.join("tidegate.toml")));
    assert_eq!(given.usual_rules_dir, Some(own.join("rules.d")));
    // Root serves the machine, whatever home it has.
    let of_root = surroundings(true, &variables).config(None, None);
    assert_eq!(of_root.usual_rules_dir, None);
    let named = surroundings(false, &variables).config(Some("c.toml".into()), Some("r".into()));
    assert_eq!(named.file, Some("c.toml".into()));
    assert_eq!(named.rules_dir, Some("r".into()));
    let home = directory.path().join("home");
    let config = home.join(".config/tidegate/rules.d");
    std::fs::create_dir_all(&config).unwrap();
    let of_home = surroundings(false, &[("HOME", &home)]).config(None, None);
    assert_eq!(of_home.usual_rules_dir, Some(config));
    let managed = [("CONFIGURATION_DIRECTORY", own.as_path())];
    let of_unit = surroundings(true, &managed).config(None, None);
    assert_eq!(of_unit.usual_rules_dir, Some(own.join("rules.d")));
}
