//! The commands of README, tutorial and the page of HTTP, word for word, against an agent of this build.
//!
//! A block `sh` is run; what a block `text` or `json` behind it shows is looked for in what the commands print, line
//! by line, where `…` stands for anything. A block `console` is for the reader alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;
use tidegate_tests::agent::CALM;
use tidegate_tests::generated::root;
use tidegate_tests::program::Program;
use tidegate_tests::skip;
use tidegate_tests::until::{self, SOON};

use crate::pages::{Page, page};

/// Where the documents put everything.
const PLACE: &str = "/tmp/tidegate";

/// A block of commands, and the lines that are to be seen.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    commands: String,
    shows: Vec<String>,
}

/// The steps of a page, up to a heading.
fn steps(page: &Page, end: &str) -> Vec<Step> {
    let text = page.text.split(end).next().unwrap_or_default().to_owned();
    let path = page.path.clone();
    let page = Page { path, text };
    let mut steps: Vec<Step> = Vec::new();
    for fence in page.fences() {
        match fence.language {
            "sh" => steps.push(Step {
                commands: fence.code,
                shows: Vec::new(),
            }),
            "text" | "json" => {
                if let Some(step) = steps.last_mut() {
                    step.shows.extend(fence.code.lines().map(str::to_owned));
                }
            }
            _ => {}
        }
    }
    steps
}

/// A place of its own for what the documents do.
struct Stage {
    folder: TempDir,
    agent: Option<Child>,
    /// What earlier steps set: variables and functions.
    set: String,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(agent) = &mut self.agent {
            let ended = agent.kill().and_then(|()| agent.wait());
            assert!(ended.is_ok(), "{ended:?}");
        }
    }
}

impl Stage {
    /// `None`, after saying so, where a tool is missing.
    fn open() -> Option<Self> {
        skip::tool("curl", "--version")?;
        let folder = tempfile::tempdir().expect("there is room for a directory");
        let programs = folder.path().join("target/release");
        fs::create_dir_all(&programs).expect("the directory is ours");
        let built = Program::Tidegate.path();
        let built = built.canonicalize().expect("it was built");
        std::os::unix::fs::symlink(&built, programs.join("tidegate"))
            .expect("the directory is ours");
        // `cargo run --release -- …` runs what is built.
        let cargo = folder.path().join("cargo");
        // Whatever else the machine does meanwhile is no overload of this agent.
        fs::write(folder.path().join("calm.toml"), CALM).expect("the directory is ours");
        let script = "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 9\nshift 3\n\
                      exec target/release/tidegate \"$@\" --config calm.toml --metrics-listen off\n";
        fs::write(&cargo, script).expect("the directory is ours");
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Some(Self {
            folder,
            agent: None,
            set: String::new(),
        })
    }

    fn shell(&self, commands: &str) -> Command {
        let here = self.folder.path();
        let place = here.join("place").to_string_lossy().into_owned();
        let mut shell = Command::new("bash");
        let path = std::env::var("PATH").unwrap_or_default();
        shell
            .arg("-c")
            .arg(format!("exec 2>&1\n{}{commands}", self.set).replace(PLACE, &place))
            .current_dir(here)
            .env("PATH", format!("{}:{path}", here.display()))
            .env_remove("TIDEGATE_RUNTIME_DIR")
            .stdin(Stdio::null());
        shell
    }

    /// What commands print, with the place as the documents have it.
    fn run(&self, commands: &str) -> (String, Output) {
        let output = self.shell(commands).output().expect("bash runs");
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let place = self.folder.path().join("place");
        let text = String::from_utf8_lossy(&text).replace(&*place.to_string_lossy(), PLACE);
        (text, output)
    }

    /// Does what a step says, and looks for what it shows, again and again where it does not come at once: a file of
    /// rules is read within a second, and a count is that of a second.
    fn play(&mut self, step: &Step) {
        if step.commands.contains("cargo run --release") {
            self.start(&step.commands);
        } else if step.shows.is_empty() {
            let (text, output) = self.run(&step.commands);
            assert!(output.status.success(), "{}\n{text}", step.commands);
        } else {
            let mut last = String::new();
            until::holds(&format!("{step:?} shows so"), 3 * SOON, || {
                last = self.run(&step.commands).0;
                shows(&last, &step.shows) || {
                    assert!(!last.contains("command not found"), "{last}");
                    false
                }
            });
        }
        let lasts = |line: &&str| line.starts_with("export ") || line.contains("() {");
        if step.commands.lines().any(|line| lasts(&line)) {
            self.set.push_str(&definitions(&step.commands));
        }
    }

    fn start(&mut self, commands: &str) {
        let mut shell = self.shell(&commands.replace("cargo run", "exec cargo run"));
        let quiet = shell.stdout(Stdio::null()).stderr(Stdio::null());
        self.agent = Some(quiet.spawn().expect("bash runs"));
        let sockets = self.folder.path().join("place/run");
        until::holds("an agent that serves", SOON, || serves(&sockets));
    }
}

fn serves(sockets: &Path) -> bool {
    UnixStream::connect(sockets.join("http.sock")).is_ok()
}

/// The lines that set variables and functions.
fn definitions(commands: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in commands.lines() {
        let begins = line.contains("() {");
        if inside || begins || line.starts_with("export ") {
            kept.push_str(line);
            kept.push('\n');
        }
        inside = (inside || begins) && !line.ends_with('}');
    }
    kept
}

/// Whether a text has these lines in this order, each as a part of a line of its own.
fn shows(text: &str, lines: &[String]) -> bool {
    let mut rest = text.lines();
    lines
        .iter()
        .all(|wanted| rest.any(|line| is_like(line, wanted)))
}

/// Whether a line has the parts between `…` in this order.
fn is_like(line: &str, wanted: &str) -> bool {
    let mut rest = line;
    wanted.split('…').all(|part| match rest.split_once(part) {
        Some((_before, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Plays the steps of a page. The permit of each answer takes the place of PERMIT in the next step.
fn play(page: &Page, end: &str) {
    let Some(mut stage) = Stage::open() else {
        return;
    };
    let steps = steps(page, end);
    assert!(steps.len() >= 5, "{}: {} steps", page.path, steps.len());
    for step in &steps {
        if step.commands.contains("PERMIT") {
            let question = "curl -s --unix-socket /tmp/tidegate/run/http.sock -d '{\"resource\":\"order-create\"}' \
                            http://tidegate/v1/enter";
            let (answer, _) = stage.run(question);
            let permit = answer.split("\"permit\":\"").nth(1);
            let permit = permit.and_then(|rest| rest.split('"').next());
            let permit = permit.unwrap_or_else(|| panic!("no permit: {answer}"));
            let commands = step.commands.replace("PERMIT", permit);
            let (said, output) = stage.run(&commands);
            assert!(output.status.success(), "{commands}\n{said}");
            assert!(!said.contains("error"), "{commands}\n{said}");
        } else {
            stage.play(step);
        }
    }
}

#[test]
fn the_readme_does_what_it_says() {
    play(&page("README.md".to_owned()), "\n## What it does");
}

#[test]
fn the_tutorial_does_what_it_says() {
    play(&page("docs/tutorial.md".to_owned()), "\n## 8.");
}

#[test]
fn the_questions_of_the_page_of_http_are_answered() {
    let Some(mut stage) = Stage::open() else {
        return;
    };
    let tutorial = steps(&page("docs/tutorial.md".to_owned()), "\n## 2.");
    stage.play(tutorial.first().expect("it starts an agent"));
    let http = steps(&page("docs/http.md".to_owned()), "\n## Exit");
    assert_eq!(http.len(), 1, "{http:?}");
    for step in &http {
        stage.play(step);
    }
    // A refusal has the fields that the page names.
    let refusal = "curl -s --unix-socket /tmp/tidegate/run/http.sock \
                   'http://tidegate/v1/admit?resource=shut'";
    let rule = stage.folder.path().join("place/rules.d/shut.toml");
    fs::write(rule, "[[flow]]\nresource = \"shut\"\ncount = 0\n").expect("the directory is ours");
    let mut answer = String::new();
    until::holds("a rule that refuses", SOON, || {
        answer = stage.run(refusal).0;
        answer.contains("\"admitted\":false")
    });
    let said: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(answer.trim()).expect("it is JSON");
    let text = page("docs/http.md".to_owned()).text;
    let sample = text
        .split("```json\n")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let sample: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(sample.unwrap_or_default()).expect("the sample is JSON");
    assert_eq!(
        said.keys().collect::<Vec<_>>(),
        sample.keys().collect::<Vec<_>>()
    );
    assert!(root().join("docs/http.md").exists());
}

#[test]
fn a_line_is_compared_with_what_is_left_out_of_it() {
    assert!(is_like(
        "a: refused; retry in 635 ms",
        "refused; retry in … ms"
    ));
    assert!(!is_like("a: refused", "admitted"));
    assert!(shows("one\ntwo\n", &["one".to_owned(), "t…o".to_owned()]));
    assert!(!shows("two\none\n", &["one".to_owned(), "two".to_owned()]));
    let kept = definitions("export A=1\nf() {\n  true\n}\nf\ng() { true; }\nh\n");
    assert_eq!(kept, "export A=1\nf() {\n  true\n}\ng() { true; }\n");
}
