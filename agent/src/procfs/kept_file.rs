//! A file that is opened once and read again and again, without allocating.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::NoValue;

/// Where a buffer starts; `/proc/stat` of a host with a few hundred interrupts fits.
const BUFFER_START_BYTES: usize = 64 * 1024;
/// Where a buffer ends; no file that is read here comes near.
const BUFFER_MAX_BYTES: usize = 4 * 1024 * 1024;

/// A first read this short was also the last. The kernel hands out whole records, a page at a time: it
/// stops so early only at the end, as no record of the files read here takes three quarters of a page.
const SHORT_BYTES: usize = 1024;

/// How long a file that was not there is not looked for again. Many a group has no file for a
/// controller that is off, and looking for it costs more than reading one that is there.
const ABSENT_NS: u64 = 1_000_000_000;

/// Bytes that every reader of a thread shares. They grow while they are too few, then never again.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    /// When the tick is; `None` outside of ticks.
    now_ns: Option<u64>,
    /// A file that cannot be read, and the errno of it.
    #[cfg(test)]
    pub(crate) refused: Option<(PathBuf, i32)>,
}

impl ReadBuffer {
    /// A buffer with room for the usual files.
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER_START_BYTES],
            now_ns: None,
            #[cfg(test)]
            refused: None,
        }
    }

    /// Begins a tick.
    pub(crate) fn begin_tick(&mut self, now_ns: u64) {
        self.now_ns = Some(now_ns);
    }

    /// The whole content of a file that is not kept open.
    ///
    /// # Errors
    /// As [`KeptFile::read`].
    pub(crate) fn read_once(&mut self, path: &Path) -> Result<&[u8], NoValue> {
        self.read_file(&File::open(path).map_err(|error| NoValue::of(&error))?)
    }

    /// The whole content of an open file.
    ///
    /// # Errors
    /// As [`KeptFile::read`].
    pub(crate) fn read_file(&mut self, file: &File) -> Result<&[u8], NoValue> {
        let filled = self.fill(file)?;
        self.content(filled)
    }

    fn content(&self, filled: usize) -> Result<&[u8], NoValue> {
        match self.bytes.get(..filled) {
            Some(bytes) if !bytes.is_empty() => Ok(bytes),
            _ => Err(NoValue::Empty),
        }
    }

    /// Reads the whole of `file` from its start.
    fn fill(&mut self, file: &File) -> Result<usize, NoValue> {
        #[cfg(test)]
        if let Some(errno) = self.refusal(file) {
            return Err(NoValue::Os(errno));
        }
        let mut filled = 0_usize;
        loop {
            let offset = u64::try_from(filled).unwrap_or(u64::MAX);
            match file.read_at(self.bytes.get_mut(filled..).unwrap_or_default(), offset) {
                Ok(0) if filled < self.bytes.len() => return Ok(filled),
                Ok(0) if self.bytes.len() >= BUFFER_MAX_BYTES => return Err(NoValue::TooLarge),
                Ok(0) => self.bytes.resize(self.bytes.len().saturating_mul(2), 0),
                Ok(count) if filled == 0 && count <= SHORT_BYTES => return Ok(count),
                Ok(count) => filled = filled.saturating_add(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NoValue::of(&error)),
            }
        }
    }
}

#[cfg(test)]
impl ReadBuffer {
    fn refusal(&self, file: &File) -> Option<i32> {
        use std::os::fd::AsRawFd as _;
        let (path, errno) = self.refused.as_ref()?;
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        (opened == *path).then_some(*errno)
    }
}

/// One file of the kernel, kept open between samples.
///
/// It need not exist: it is opened by the first read that finds it. A group that was removed and
/// made anew is seen because the old descriptor then fails with `ENODEV`.
#[derive(Debug)]
pub(crate) struct KeptFile {
    path: PathBuf,
    open: Option<File>,
    /// When it was last looked for in vain.
    absent_ns: Option<u64>,
    is_opened_anew: bool,
}

impl KeptFile {
    /// A file at `path`, not opened yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            absent_ns: None,
            is_opened_anew: false,
        }
    }

    /// Whether the last read did not use the descriptor of the one before: what stands at the path may
    /// be another file than before.
    pub(crate) fn is_opened_anew(&self) -> bool {
        self.is_opened_anew
    }

    /// The whole content now.
    ///
    /// # Errors
    /// The operating system's refusal; [`NoValue::Empty`] for a file without content.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut ReadBuffer) -> Result<&'b [u8], NoValue> {
        if self.is_known_absent(buffer) {
            return Err(NoValue::Os(libc::ENOENT));
        }
        self.is_opened_anew = false;
        let filled = match self.open.take() {
            Some(file) => match buffer.fill(&file) {
                Ok(filled) => {
                    self.open = Some(file);
                    filled
                }
                Err(NoValue::Os(libc::ENODEV | libc::ESTALE | libc::ESRCH)) => {
                    self.read_opened_anew(buffer)?
                }
                Err(fault) => return Err(fault),
            },
            None => self.read_opened_anew(buffer)?,
        };
        buffer.content(filled)
    }

    fn read_opened_anew(&mut self, buffer: &mut ReadBuffer) -> Result<usize, NoValue> {
        self.is_opened_anew = true;
        let opened = File::open(&self.path).map_err(|error| NoValue::of(&error));
        let is_absent = opened.as_ref().is_err_and(|fault| fault.is_absent());
        self.absent_ns = buffer.now_ns.filter(|_now_ns| is_absent);
        let file = opened?;
        let filled = buffer.fill(&file)?;
        if is_of_the_kernel(&file) {
            self.open = Some(file);
        }
        Ok(filled)
    }

    fn is_known_absent(&self, buffer: &ReadBuffer) -> bool {
        let since_ns = buffer.now_ns.zip(self.absent_ns);
        since_ns.is_some_and(|(now_ns, then_ns)| now_ns.saturating_sub(then_ns) < ABSENT_NS)
    }
}

/// Whether the kernel makes up the content at each read. Any other file may be replaced by a rename
/// (a fixture, or what lxcfs lays over `/proc`), which a kept descriptor would never see.
pub(crate) fn is_of_the_kernel(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|filesystem| {
        matches!(
            filesystem.f_type,
            libc::PROC_SUPER_MAGIC | libc::CGROUP_SUPER_MAGIC | libc::CGROUP2_SUPER_MAGIC
        )
    })
}

/// Whether what stands at this path belongs to a real `/proc`.
pub(crate) fn is_below_proc(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|filesystem| filesystem.f_type == libc::PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_and_grows_the_buffer_when_it_must() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let mut file = KeptFile::new(path.clone());
        let mut buffer = ReadBuffer::new();
        assert_eq!(file.read(&mut buffer), Err(NoValue::Os(libc::ENOENT)));
        for size in [1, BUFFER_START_BYTES, BUFFER_START_BYTES * 3] {
            std::fs::write(&path, vec![b'x'; size]).unwrap();
            assert_eq!(file.read(&mut buffer).unwrap().len(), size);
        }
        std::fs::write(&path, vec![b'x'; BUFFER_MAX_BYTES]).unwrap();
        assert_eq!(file.read(&mut buffer), Err(NoValue::TooLarge));
        std::fs::write(&path, "").unwrap();
        assert_eq!(file.read(&mut buffer), Err(NoValue::Empty));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.read(&mut buffer), Err(NoValue::Os(libc::ENOENT)));
    }

    #[test]
    fn an_ordinary_file_that_is_replaced_by_a_rename_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu.max");
        std::fs::write(&path, "old").unwrap();
        let mut file = KeptFile::new(path.clone());
        let mut buffer = ReadBuffer::new();
        assert_eq!(file.read(&mut buffer).unwrap(), b"old");
        std::fs::write(dir.path().join("next"), "new").unwrap();
        std::fs::rename(dir.path().join("next"), &path).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"new");
    }

    #[test]
    fn an_absent_file_is_looked_for_again_a_second_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu.max");
        let mut file = KeptFile::new(path.clone());
        let mut buffer = ReadBuffer::new();
        buffer.begin_tick(5);
        assert_eq!(file.read(&mut buffer), Err(NoValue::Os(libc::ENOENT)));
        std::fs::write(&path, "max").unwrap();
        buffer.begin_tick(ABSENT_NS + 4);
        assert_eq!(file.read(&mut buffer), Err(NoValue::Os(libc::ENOENT)));
        buffer.begin_tick(ABSENT_NS + 5);
        assert_eq!(file.read(&mut buffer).unwrap(), b"max");
    }

    #[test]
    fn a_file_of_the_kernel_stays_open() {
        let mut file = KeptFile::new("/proc/self/stat".into());
        let mut buffer = ReadBuffer::new();
        for _sample in 0..2 {
            assert!(file.read(&mut buffer).unwrap().len() > 20);
            assert!(file.open.is_some());
        }
    }

    #[test]
    fn a_directory_is_a_fault_with_its_errno() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = KeptFile::new(dir.path().to_path_buf());
        assert_eq!(
            file.read(&mut ReadBuffer::new()),
            Err(NoValue::Os(libc::EISDIR))
        );
    }
}
