//! One process: its threads, listed again when their number changes.

use super::Scan;
use super::thread::Thread;
use crate::procfs::NoValue;
use crate::procfs::directory::{self, OpenDirectory};
use crate::procfs::parse::number;

/// A process of a group, with what is kept of its threads.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// By tid.
    pub(super) threads: Vec<Thread>,
    /// The directory with a directory for each thread.
    tasks: Option<OpenDirectory>,
    /// A thread of the last list has ended.
    must_list: bool,
    /// The look that saw it last.
    pub(super) look: u64,
}

impl Process {
    /// How many files are open for it.
    pub(super) fn kept(&self) -> usize {
        let of_threads: usize = self.threads.iter().map(Thread::kept).sum();
        of_threads.saturating_add(usize::from(self.tasks.is_some()))
    }

    /// One of its threads has ended.
    pub(super) fn note_end(&mut self) {
        self.must_list = true;
    }

    /// Brings the list of threads up to date.
    ///
    /// # Errors
    /// The process is gone, or hidden.
    pub(super) fn list(&mut self, pid: u32, scan: &mut Scan) -> Result<(), NoValue> {
        if let Some(tasks) = self.tasks.take() {
            scan.spend(1);
            let is_listed = !self.must_list && tasks.directories() == Ok(count(&self.threads));
            if is_listed || self.list_again(&tasks, scan).is_ok() {
                self.tasks = Some(tasks);
                return Ok(());
            }
            // The process has ended; what has its number now is another one.
            self.threads.clear();
        }
        scan.spend(3);
        let tasks = directory::open(scan.path(format_args!("/{pid}/task")))?;
        self.take_list(&tasks)?;
        self.tasks = Some(tasks).filter(|_tasks| scan.may_keep());
        Ok(())
    }

    fn list_again(&mut self, tasks: &OpenDirectory, scan: &mut Scan) -> Result<(), NoValue> {
        scan.spend(3);
        tasks.rewind()?;
        self.take_list(tasks)
    }

    /// Adds the threads that are new and drops those that are gone.
    fn take_list(&mut self, tasks: &OpenDirectory) -> Result<(), NoValue> {
        self.must_list = false;
        let threads = &mut self.threads;
        for thread in threads.iter_mut() {
            thread.is_listed = false;
        }
        directory::each_directory(tasks, &mut |name| {
            let tid = number(name).and_then(|tid| u32::try_from(tid).ok());
            let Some(tid) = tid else { return };
            match threads.binary_search_by_key(&tid, |thread| thread.tid) {
                Ok(place) => {
                    if let Some(known) = threads.get_mut(place) {
                        known.is_listed = true;
                    }
                }
                Err(place) => threads.insert(place, Thread::new(tid)),
            }
        })?;
        threads.retain(|thread| thread.is_listed);
        Ok(())
    }
}

fn count(threads: &[Thread]) -> u64 {
    u64::try_from(threads.len()).unwrap_or(u64::MAX)
}
