//! The form of source files: their length, their header, their words, and tests that do not wait.

use std::fs;

use crate::{files, read, root};

/// The longest source file, in lines.
const MAX_LINES: usize = 500;

/// Words that stand for a client, a thread or a transaction without naming it, and archaic ones.
/// Written in two halves, because this file is checked as well.
const FORBIDDEN_WORDS: [[&str; 2]; 10] = [
    ["who", "ever"],
    ["whom", "ever"],
    ["no", "body"],
    ["some", "body"],
    ["any", "body"],
    ["every", "body"],
    ["tid", "ings"],
    ["me", "nd"],
    ["men", "ded"],
    ["men", "ding"],
];

#[test]
fn files_are_short_and_begin_with_a_description() {
    for (path, text) in files(&["rs", "js", "css", "html"]) {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", path.display());
        let is_rust = path.extension().is_some_and(|it| it == "rs");
        assert!(!is_rust || text.starts_with("//!"), "{} has no `//!` header", path.display());
    }
}

#[test]
fn names_comments_and_documents_name_the_actor() {
    let forbidden = FORBIDDEN_WORDS.map(|halves| halves.concat());
    let mut found = Vec::new();
    for (path, text) in files(&["rs", "md"]) {
        for (index, line) in text.lines().enumerate() {
            for word in words(line).filter(|word| forbidden.contains(word)) {
                found.push(format!("{}:{}: {word}", path.display(), index + 1));
            }
        }
    }
    assert!(found.is_empty(), "name the actor instead:\n{}", found.join("\n"));
}

/// The words of a line in lower case. `snake_case` and `CamelCase` identifiers are taken apart.
fn words(line: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut after_lower_case = false;
    for letter in line.chars() {
        if !letter.is_alphabetic() || (letter.is_uppercase() && after_lower_case) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
        after_lower_case = letter.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

#[test]
fn no_test_sleeps_and_none_is_ignored() {
    let pauses = [["sle", "ep"], ["sle", "ep_until"], ["sle", "ep_ms"], ["park", "_timeout"]];
    let pauses = pauses.map(|halves| halves.concat());
    let ignore = ["#[", "ignore"].concat();
    for (path, text) in files(&["rs"]) {
        let is_test = path.components().any(|it| it.as_os_str() == "tests");
        // Whole words, so that imports and shell commands count as well.
        let mut words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
        let call = words.find(|word| pauses.iter().any(|pause| pause == word));
        assert!(!is_test || call.is_none(), "{} calls {call:?}", path.display());
        assert!(!text.contains(&ignore), "{} ignores a test", path.display());
    }
}

#[test]
fn every_file_of_tests_is_part_of_an_executable() {
    // These crates list their executable, so that cargo does not make one of every file.
    for name in ["domain", "server"] {
        let executable = read(format!("crates/{name}/tests/{name}.rs"));
        for entry in fs::read_dir(root().join(format!("crates/{name}/tests"))).unwrap() {
            let path = entry.unwrap().path();
            let module = path.file_stem().unwrap().to_str().unwrap();
            let is_part = module == name || executable.contains(&format!("mod {module};"));
            assert!(is_part, "{}: add `mod {module};` to {name}.rs", path.display());
        }
    }
}
