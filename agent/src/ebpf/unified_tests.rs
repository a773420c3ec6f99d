//! Groups of the unified hierarchy, on a kernel that has both: the programs take the id of whichever is asked for.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tidegate_abi::kernel::group::{place, word};

use super::program::{Programs, Wanted};
use super::rung::Rung;

const SLOT: u32 = 1;
const SOON: Duration = Duration::from_secs(20);

/// Where systems mount it: alone, or beside the older ones.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Two loops on one CPU in a group of their own; all is gone when dropped.
struct Loops {
    dir: std::path::PathBuf,
    child: Child,
}

impl Loops {
    fn start() -> Option<Self> {
        let mounts = MOUNTS.map(Path::new);
        let top = mounts
            .iter()
            .find(|top| top.join("cgroup.controllers").exists())?;
        let dir = top.join(format!("tidegate-unified-{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        // They end by themselves if this test is killed.
        let turn = "i=0; while [ $i -lt 9000000 ]; do i=$((i+1)); done";
        let script = format!("read joined; {turn} & {turn}; wait");
        let mut command = Command::new("taskset");
        command
            .args(["-c", "0", "sh", "-c", &script])
            .stdin(Stdio::piped());
        let child = command.spawn().ok()?;
        let mut loops = Self { dir, child };
        let pid = loops.child.id().to_string();
        fs::write(loops.dir.join("cgroup.procs"), pid).ok()?;
        // Now that it is in, it may begin.
        drop(loops.child.stdin.take());
        Some(loops)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        let _told = fs::write(self.dir.join("cgroup.kill"), "1");
        let _reaped = self.child.kill().and_then(|()| self.child.wait());
        let begin = Instant::now();
        while fs::remove_dir(&self.dir).is_err() && begin.elapsed() < SOON {
            std::thread::yield_now();
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that cannot run says so")]
fn alone_waits_count_for_the_group_of_the_unified_hierarchy_where_that_has_the_cpu() {
    let wanted = Wanted {
        rung: Rung::Typed,
        slots: 4,
        by_cpu_controller: false,
    };
    let (Ok(mut programs), Some(loops)) = (Programs::load(wanted), Loops::start()) else {
        println!("SKIPPED: needs programs in the kernel and a cgroup2 that this user may write");
        return;
    };
    let id = fs::metadata(&loops.dir).unwrap().ino();
    let told = word(id, SLOT).unwrap();
    programs.groups.set(place(id, 0), told, 0).unwrap();
    let begin = Instant::now();
    while programs.view.waited_ns(SLOT) < 10_000_000 {
        assert!(begin.elapsed() < SOON, "{:?} waits for nothing", loops.dir);
        std::thread::yield_now();
    }
    assert_eq!(programs.view.waited_ns(SLOT + 1), 0);
}
