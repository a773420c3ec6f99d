//! Quotas and throttling of a group and of every group above it.

use std::path::{Path, PathBuf};

use super::super::parse::quota::{self, Quota};
use super::super::truth::Truth;
use super::above::{Above, OfTick, SharedKey};
use super::throttle::{Counts, Throttling, Window};
use crate::procfs::Place;
use crate::procfs::Version;
use crate::procfs::kept_file::{KeptFile, ReadBuffer};
use crate::procfs::parse::sole_number;
use crate::procfs::{Missing, NamedSource as _, NoValue};

/// How long a group without a quota is believed to have none. Most groups have none for all their life.
const NO_QUOTA_NS: u64 = 400_000_000;

/// A group and the groups above it, the group itself first.
#[derive(Debug)]
pub(super) struct QuotaChain {
    levels: Vec<(SharedKey, PathBuf)>,
    /// Whether nothing is above the last of them.
    is_whole: bool,
}

/// What the chain says at one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChainSample {
    /// The tightest quota and its level in the chain; `None` without any quota.
    pub(super) tightest: Option<(Quota, usize)>,
    /// Throttling at the level that suffers most.
    pub(super) throttling: Result<Throttling, Missing>,
}

impl QuotaChain {
    /// Readers for the group at `place` and all above it up to the mount.
    pub(super) fn new(place: &Place, above: &mut Above) -> Self {
        let quotas = &mut above.quotas;
        let level = |place: Place| (quotas.take(&place, QuotaReader::new), place.below);
        Self {
            levels: place.chain().map(level).collect(),
            is_whole: place.is_whole,
        }
    }

    /// Ends the readers that no other group has.
    pub(super) fn end(&self, above: &mut Above) {
        for (level, _path) in &self.levels {
            above.quotas.give_back(*level);
        }
    }

    /// The path below the mount of the group at a level of the chain.
    pub(super) fn path_of(&self, level: usize) -> Option<&Path> {
        self.levels.get(level).map(|(_key, path)| path.as_path())
    }

    /// Whether a group of the chain may save up run time and use it later.
    pub(super) fn may_burst(&self, buffer: &mut ReadBuffer, above: &mut Above) -> bool {
        self.levels.iter().any(|(key, _path)| {
            let reader = above.quotas.get_mut(*key);
            reader.is_some_and(|reader| reader.may_burst(buffer))
        })
    }

    /// Every quota, and throttling wherever there is one.
    ///
    /// # Errors
    /// A quota that cannot be told: the tightest is then not known.
    pub(super) fn sample(
        &self,
        now_ns: u64,
        buffer: &mut ReadBuffer,
        above: &mut Above,
    ) -> Result<ChainSample, Missing> {
        let no_quota = Err(Missing {
            source: "cpu.stat",
            fault: if self.is_whole {
                NoValue::NoQuota
            } else {
                NoValue::NoQuotaInSight
            },
        });
        let mut sample = ChainSample {
            tightest: None,
            throttling: no_quota,
        };
        for (index, (key, _path)) in self.levels.iter().enumerate() {
            let Some(reader) = above.quotas.get_mut(*key) else {
                continue;
            };
            let Some(told) = reader.read(above.tick, now_ns, buffer)? else {
                continue;
            };
            let cpus = told.quota.cpus();
            let is_tighter = |(tightest, _level): (Quota, usize)| cpus < tightest.cpus();
            if sample.tightest.is_none_or(is_tighter) {
                sample.tightest = Some((told.quota, index));
            }
            sample.throttling = worse(sample.throttling, told.throttling);
        }
        Ok(sample)
    }
}

/// The greater of two shares; a fault of a group with a quota before the lack of one.
fn worse(
    one: Result<Throttling, Missing>,
    other: Result<Throttling, Missing>,
) -> Result<Throttling, Missing> {
    match (one, other) {
        (Ok(one), Ok(other)) if one.of_periods >= other.of_periods => Ok(one),
        (Ok(one), Err(_)) => Ok(one),
        (Err(missing), Err(_))
            if !matches!(missing.fault, NoValue::NoQuota | NoValue::NoQuotaInSight) =>
        {
            Err(missing)
        }
        (_, other) => other,
    }
}

/// The quota of one group and how it throttles.
#[derive(Debug)]
pub(super) struct QuotaReader {
    files: QuotaFiles,
    throttling: ThrottlingReader,
    burst: KeptFile,
    read: OfTick<Result<Option<QuotaReadings>, Missing>>,
    /// When it is next looked whether there is a quota, where there was none.
    none_until_ns: u64,
}

/// What one group with a quota tells.
#[derive(Debug, Clone, Copy)]
struct QuotaReadings {
    quota: Quota,
    throttling: Result<Throttling, Missing>,
}

impl QuotaReader {
    fn new(place: &Place) -> Self {
        let dir = place.dir();
        let burst = match place.version {
            Version::V1 => CFS_BURST,
            Version::V2 => CPU_BURST,
        };
        let files = match place.version {
            Version::V1 => QuotaFiles::V1 {
                quota: KeptFile::new(dir.join(CFS_QUOTA)),
                period: KeptFile::new(dir.join(CFS_PERIOD)),
            },
            Version::V2 => QuotaFiles::V2 {
                max: KeptFile::new(dir.join(CPU_MAX)),
            },
        };
        let truth = place.version.truth();
        Self {
            files,
            throttling: ThrottlingReader {
                truth,
                stat: KeptFile::new(dir.join(truth.periods.file)),
                window: Window::new(),
            },
            burst: KeptFile::new(dir.join(burst)),
            read: OfTick::default(),
            none_until_ns: 0,
        }
    }

    fn may_burst(&mut self, buffer: &mut ReadBuffer) -> bool {
        let saved = self
            .burst
            .read(buffer)
            .map(|bytes| sole_number(bytes, CPU_BURST));
        !matches!(saved, Err(_) | Ok(Ok(0)))
    }

    fn read(
        &mut self,
        tick: u64,
        now_ns: u64,
        buffer: &mut ReadBuffer,
    ) -> Result<Option<QuotaReadings>, Missing> {
        let Self {
            files,
            throttling,
            read,
            burst: _,
            none_until_ns,
        } = self;
        *read.get(tick, || {
            if now_ns < *none_until_ns {
                return Ok(None);
            }
            let Some(quota) = files.read(buffer)? else {
                *none_until_ns = now_ns.saturating_add(NO_QUOTA_NS);
                return Ok(None);
            };
            let throttling = throttling.read(now_ns, quota, buffer);
            Ok(Some(QuotaReadings { quota, throttling }))
        })
    }
}

/// How often, and for how long, a group runs out of its quota.
#[derive(Debug)]
struct ThrottlingReader {
    truth: &'static Truth,
    stat: KeptFile,
    window: Window,
}

impl ThrottlingReader {
    fn read(
        &mut self,
        now_ns: u64,
        quota: Quota,
        buffer: &mut ReadBuffer,
    ) -> Result<Throttling, Missing> {
        let bytes = self.stat.read(buffer);
        let counts = bytes.and_then(|bytes| Counts::read(bytes, self.truth));
        let grown = counts.and_then(|counts| self.window.take(now_ns, counts));
        grown
            .map(|grown| Throttling::of(grown, quota))
            .named(self.truth.periods.file)
    }
}

const CPU_MAX: &str = "cpu.max";
const CPU_BURST: &str = "cpu.max.burst";
const CFS_BURST: &str = "cpu.cfs_burst_us";
const CFS_QUOTA: &str = "cpu.cfs_quota_us";
const CFS_PERIOD: &str = "cpu.cfs_period_us";

#[derive(Debug)]
enum QuotaFiles {
    V1 { quota: KeptFile, period: KeptFile },
    V2 { max: KeptFile },
}

impl QuotaFiles {
    /// The quota of one group. A file that is not there is no limit: the top of a mount has none, nor
    /// has a group for which the controller is off. An empty one likewise.
    fn read(&mut self, buffer: &mut ReadBuffer) -> Result<Option<Quota>, Missing> {
        match self {
            Self::V2 { max } => {
                none_if_absent(max.read(buffer).and_then(quota::parse_max)).named(CPU_MAX)
            }
            Self::V1 { quota, period } => {
                let run = quota.read(buffer).and_then(quota::parse_cfs_quota);
                let Some(run_us) = none_if_absent(run).named(CFS_QUOTA)? else {
                    return Ok(None);
                };
                let joined = period
                    .read(buffer)
                    .and_then(|bytes| quota::join_cfs_period(run_us, bytes));
                joined.map(Some).named(CFS_PERIOD)
            }
        }
    }
}

fn none_if_absent<T>(read: Result<Option<T>, NoValue>) -> Result<Option<T>, NoValue> {
    match read {
        Err(NoValue::Empty) => Ok(None),
        Err(fault) if fault.is_absent() => Ok(None),
        other => other,
    }
}
