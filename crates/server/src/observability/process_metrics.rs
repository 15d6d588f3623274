//! The usual metrics of a process, read from `/proc` when the page is requested. On a system without
//! it, they are missing.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    time::Duration,
};

use super::exposition::{Exposition, Kind};

/// Length of a clock tick in `/proc`, which Linux fixes for programs.
const TICK_MILLIS: u64 = 10;

/// The process, as far as its metrics do not change.
pub(super) struct Process {
    /// When the process started, as Unix time.
    started: Option<Duration>,
}

impl Process {
    pub(super) fn this() -> Self {
        let started =
            ProcessTimes::read().and_then(|times| Some(boot_time()? + times.started_after_boot));
        Self { started }
    }

    /// Adds the metrics to a page.
    pub(super) fn write(&self, page: &mut Exposition) {
        if let Some(times) = ProcessTimes::read() {
            let name = "process_cpu_seconds_total";
            let help = "CPU time that the process has used";
            page.value(Kind::Counter, name, help, times.cpu.as_secs_f64());
        }
        if let Some(bytes) = read("/proc/self/status").as_deref().and_then(resident_bytes) {
            let name = "process_resident_memory_bytes";
            page.value(Kind::Gauge, name, "Memory of the process that is in RAM", bytes);
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // Without the one that reads the directory.
            let open = files.count().saturating_sub(1);
            page.value(Kind::Gauge, "process_open_fds", "Open file descriptors", open);
        }
        if let Some(max) = read("/proc/self/limits").as_deref().and_then(max_open_files) {
            let help = "File descriptors that the process may open";
            page.value(Kind::Gauge, "process_max_fds", help, max);
        }
        if let Some(started) = self.started {
            let name = "process_start_time_seconds";
            let help = "When the process started, as Unix time";
            page.value(Kind::Gauge, name, help, started.as_secs_f64());
        }
    }
}

/// Times of a process.
#[derive(Debug, PartialEq, Eq)]
struct ProcessTimes {
    cpu: Duration,
    started_after_boot: Duration,
}

impl ProcessTimes {
    fn read() -> Option<Self> {
        Self::parse(&read("/proc/self/stat")?)
    }

    /// Parses `/proc/PID/stat`.
    fn parse(stat: &str) -> Option<Self> {
        // The name of the program is in parentheses and can contain any character. The first field
        // after it is the third of the line.
        let (_, rest) = stat.rsplit_once(") ")?;
        let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse::<u64>().ok();
        let time = |ticks: u64| Duration::from_millis(ticks.saturating_mul(TICK_MILLIS));
        let (user, system, started) = (field(14)?, field(15)?, field(22)?);
        Some(Self { cpu: time(user) + time(system), started_after_boot: time(started) })
    }
}

/// When the machine started, as Unix time.
fn boot_time() -> Option<Duration> {
    let lines = BufReader::new(fs::File::open("/proc/stat").ok()?).lines();
    let mut boot_times = lines.map_while(Result::ok).filter_map(|line| {
        let seconds = line.strip_prefix("btime ")?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    });
    boot_times.next()
}

/// The resident memory in `/proc/PID/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}

/// The limit in `/proc/PID/limits` that applies, not the one that the process may raise it to.
fn max_open_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        max => max.parse().ok(),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_does_not_confuse_the_fields() {
        let fields = "S 1 2 3 0 -1 4194560 9 0 0 0 250 75 0 0 20 0 8 0 12345 1000 200 0 0";
        for name in ["galley", "a ) b", ") 1 (2) "] {
            let times = ProcessTimes::parse(&format!("42 ({name}) {fields}")).unwrap();
            let (cpu, started_after_boot) =
                (Duration::from_millis(3_250), Duration::from_millis(123_450));
            assert_eq!(times, ProcessTimes { cpu, started_after_boot }, "{name}");
        }
        assert_eq!(ProcessTimes::parse("42 (galley) S 1"), None);
    }

    #[test]
    fn a_machine_can_be_up_for_years() {
        let fields = "S 1 2 3 0 -1 4194560 9 0 0 0 5000000000 0 0 0 20 0 8 0 6000000000 1000";
        let times = ProcessTimes::parse(&format!("42 (galley) {fields}")).unwrap();
        assert_eq!(times.cpu, Duration::from_secs(50_000_000));
        assert_eq!(times.started_after_boot, Duration::from_mins(1_000_000));
    }

    #[test]
    fn memory_is_in_bytes_and_the_limit_is_the_soft_one() {
        let status = "Name:\tgalley\nVmHWM:\t  9000 kB\nVmRSS:\t  2048 kB\n";
        assert_eq!(resident_bytes(status), Some(2_097_152));
        let limits = "Limit           Soft Limit  Hard Limit  Units\n\
                      Max processes   100         100         processes\n\
                      Max open files  1024        524288      files\n";
        assert_eq!(max_open_files(limits), Some(1_024));
        let unlimited = "Max open files  unlimited  unlimited  files\n";
        assert_eq!(max_open_files(unlimited), Some(u64::MAX));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_metrics() {
        let mut page = Exposition::default();
        Process::this().write(&mut page);
        let page = page.into_text();
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_max_fds",
            "process_start_time_seconds",
        ] {
            let value = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            assert!(value.is_some_and(|it| it.parse::<f64>().unwrap() >= 0.0), "{name}: {page}");
        }
    }
}
