//! Output on a terminal: colours and progress. `script` of util-linux provides the terminal.

use std::path::Path;

use crate::service::{GALLEY, Launch, command, galley, galley_json};

/// Runs `galley` with these arguments on a terminal. Returns what the terminal got.
#[track_caller]
fn on_terminal(dir: &Path, variables: &[(&str, &str)], arguments: &str) -> String {
    let mut command = command("script");
    command.current_dir(dir).env("GALLEY_STORE", "sqlite:galley.db").env("TERM", "xterm");
    command.envs(variables.iter().copied());
    let line = format!("{GALLEY} {arguments}");
    let output = command.args(["-qec", &line, "/dev/null"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const ESCAPE: &str = "\u{1b}[";

#[test]
fn help_errors_and_verdicts_have_colours_on_a_terminal_unless_no_color_is_set() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    for (arguments, coloured) in [
        ("--help", "\u{1b}[1m\u{1b}[32mUsage:\u{1b}[0m"),
        ("account show nowhere", "\u{1b}[1m\u{1b}[31mgalley:\u{1b}[0m there is no account"),
        ("doctor", "\u{1b}[32mgood\u{1b}[0m"),
    ] {
        let shown = on_terminal(dir.path(), &[], arguments);
        assert!(shown.contains(coloured), "{arguments}: {shown:?}");
    }
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        for arguments in ["--help", "account show nowhere", "config"] {
            let plain = on_terminal(dir.path(), &[variable], arguments);
            assert!(!plain.contains(ESCAPE), "{arguments} with {variable:?}: {plain:?}");
        }
    }
}

#[test]
fn the_log_of_the_service_respects_no_color() {
    let dir = tempfile::tempdir().unwrap();
    // The address is in use, so that the service ends after its first lines.
    let service = Launch::new(dir.path()).start();
    let serve = format!("serve --set min_free_disk_mib=0 --listen {}", service.address);
    let unknown = ("GALLEY_UNKNOWN", "1");
    let shown = on_terminal(dir.path(), &[unknown], &serve);
    assert!(shown.contains("there is no setting") && shown.contains(ESCAPE), "{shown:?}");
    let plain = on_terminal(dir.path(), &[unknown, ("NO_COLOR", "1")], &serve);
    assert!(plain.contains("there is no setting") && !plain.contains(ESCAPE), "{plain:?}");
}

#[test]
fn backup_restore_and_doctor_show_their_progress_on_a_terminal_only() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    for (arguments, phases) in [
        ("backup copy.db", ["writing the copy: ", "checking the backup for damage"]),
        ("restore copy.db --store sqlite:new.db", ["checking the backup", "writing the copy: "]),
        ("doctor --count-bytes", ["counting the stored bytes", "checking the store sqlite:"]),
    ] {
        let shown = on_terminal(dir.path(), &[], arguments);
        let mut rest = &*shown;
        for phase in phases {
            let found = rest.split_once(phase);
            rest = found.unwrap_or_else(|| panic!("{phase:?} of {arguments}: {shown:?}")).1;
        }
    }
    for arguments in [&["backup", "second.db"][..], &["doctor"]] {
        let output = galley(dir.path(), arguments);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}
