//! `/proc/PID/status`: the CPUs that a process lets itself run on.

use super::cpu_set::{self, CpuSet};
use crate::procfs::NoValue;
use crate::procfs::parse::lines;

const KEY: &str = "Cpus_allowed_list:";

/// Reads the list of allowed CPUs.
///
/// # Errors
/// [`NoValue::NoField`] without such a line, [`NoValue::Malformed`] for one that holds no list.
pub(crate) fn parse(status: &[u8]) -> Result<CpuSet, NoValue> {
    // A name cannot pass for this line: the kernel writes a newline in it as two characters.
    let mut lists = lines(status).filter_map(|line| line.strip_prefix(KEY.as_bytes()));
    let list = lists.next().ok_or(NoValue::NoField("Cpus_allowed_list"))?;
    let set = cpu_set::parse(list)?;
    if set.is_empty() {
        return Err(NoValue::Malformed("Cpus_allowed_list"));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_found_among_the_other_lines_and_not_in_a_name() {
        let status = b"Name:\tCpus_allowed_list:\\n7\nUmask:\t0022\nCpus_allowed:\t0b\n\
            Cpus_allowed_list:\t0-1,3\nMems_allowed_list:\t0\n";
        let set = parse(status).unwrap();
        assert_eq!(set.count(), 3);
        assert!(set.contains(3) && !set.contains(7));
    }

    #[test]
    fn without_a_list_there_is_a_fault() {
        assert_eq!(
            parse(b"Name:\tx\n"),
            Err(NoValue::NoField("Cpus_allowed_list"))
        );
        for odd in ["\n", "\t\n", "\t1-\n", "\tall\n"] {
            let status = format!("Cpus_allowed_list:{odd}");
            parse(status.as_bytes()).unwrap_err();
        }
    }
}
