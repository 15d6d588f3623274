//! What the command line says about itself: help, completions, the default settings file.

use std::process::Output;

use crate::service::{GALLEY, command};

/// Every command, from the list of published names.
fn commands() -> impl Iterator<Item = Vec<&'static str>> {
    let names = include_str!("../published-names.txt");
    let (_, commands) = names.split_once("[commands]\n").unwrap();
    let commands = commands.split_once("\n[").unwrap().0.lines();
    let is_command = |line: &&str| line.split(' ').all(|it| it.starts_with(char::is_lowercase));
    commands.filter(is_command).map(|line| line.split(' ').skip(1).collect())
}

/// Runs `galley` in a directory without a settings file, 80 columns wide.
fn run(arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    command(GALLEY).current_dir(&dir).env("COLUMNS", "80").args(arguments).output().unwrap()
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The help of a command without its line breaks.
#[track_caller]
fn help(command: &str) -> String {
    let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
    printed(&arguments).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_help_of_every_command_fits_into_80_columns() {
    let mut count = 0;
    for command in commands() {
        count += 1;
        let text = printed(&[&command[..], &["--help"]].concat());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
    }
    assert!(count > 40, "{count} commands");
}

#[test]
fn help_lists_possible_values_and_environment_variables() {
    for (command, expected) in [
        ("serve", "[possible values: human, json]"),
        ("serve", "[env: GALLEY_LISTEN]"),
        ("serve", "[env: GALLEY_LOG_FORMAT]"),
        ("serve", "GALLEY_SECRET_KEY"),
        ("doctor", "[env: GALLEY_CONFIG]"),
        ("doctor", "[env: GALLEY_STORE]"),
        ("migrate", "need not be typed) [env: GALLEY_STORE]"),
        ("account create", "[possible values: v1, whatsapp]"),
        ("account create", "[possible values: auto, manual]"),
        ("template list", "[possible values: PENDING, APPROVED, "),
        ("template list", "[possible values: MARKETING, UTILITY, "),
        ("webhook add", "[possible values: galley, whatsapp]"),
        ("webhook add", "[possible values: template.created, "),
        ("webhook deliveries", "[possible values: waiting, delivered, failed]"),
        ("webhook listen", "[env: GALLEY_WEBHOOK_SECRET]"),
        ("webhook listen", "[env: GALLEY_WEBHOOK_SECRET_FILE]"),
        ("lint", "[possible values: v1, whatsapp]"),
        ("completions", "[possible values: bash, elvish, fish, powershell, zsh]"),
    ] {
        let text = help(command);
        assert!(text.contains(expected), "{expected:?} in the help of {command}: {text}");
    }
}

#[test]
fn an_unknown_value_is_refused_with_the_possible_values() {
    let output = run(&["template", "list", "shop", "--status", "APROVED"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for expected in ["APROVED", "PENDING, APPROVED", "a similar value exists: 'APPROVED'"] {
        assert!(stderr.contains(expected), "{expected:?} in {stderr}");
    }
}

#[test]
fn completions_name_the_commands_flags_and_values_and_need_no_store() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        // The generators for elvish and PowerShell complete no values.
        let values: &[_] =
            if ["bash", "fish", "zsh"].contains(&shell) { &["APPROVED", "whatsapp"] } else { &[] };
        for expected in ["completions", "rotate", "allow-damaged"].iter().chain(values) {
            assert!(script.contains(expected), "{expected:?} for {shell}");
        }
    }
    let refused = run(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn bash_completes_a_subcommand_and_a_value() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("galley.bash"), printed(&["completions", "bash"])).unwrap();
    let complete = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let run = format!(
            ". ./galley.bash; COMP_WORDS=({line}); COMP_CWORD={}; _galley galley {last:?} {before}; \
             echo \"${{COMPREPLY[*]}}\"",
            words.len() - 1
        );
        let mut bash = command("bash");
        let output = bash.current_dir(&dir).args(["-c", &run]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("galley webh"), "webhook");
    assert_eq!(complete("galley template list shop --status APP"), "APPROVED");
}

#[test]
fn config_default_prints_a_settings_file_even_if_the_present_one_is_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("galley.toml");
    std::fs::write(&file, "listen = [").unwrap();
    let mut command = command(GALLEY);
    let output = command.current_dir(&dir).args(["config", "--default"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        include_str!("../../galley.default.toml")
    );
    assert_eq!(run(&["config", "--default", "--json"]).status.code(), Some(2));

    // What it prints is a valid settings file, and all of it is in effect.
    std::fs::write(&file, printed(&["config", "--default"])).unwrap();
    let mut command = crate::service::command(GALLEY);
    let shown = command.current_dir(&dir).arg("config").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.lines().skip(1).all(|line| line.ends_with("galley.toml")), "{shown}");
}
