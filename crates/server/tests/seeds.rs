//! The seeds of the fuzz targets, each through its target: what `scripts/fuzz` begins with holds, and
//! the targets still compile.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "api/setup.rs"]
mod setup;
#[path = "../../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, dead_code, reason = "they are for the fuzzer, too, which times them")]
mod targets;

use std::{fs, path::Path};

/// Runs all files of a directory through a target.
fn sown(directory: &str, target: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = fs::read_dir(root.join(directory)).unwrap().map(|file| file.unwrap().path());
    let seeds: Vec<_> = files.filter(|file| file.is_file()).collect();
    assert!(seeds.len() > 2, "{directory} has {} seeds", seeds.len());
    for seed in seeds {
        target(&fs::read(seed).unwrap());
    }
}

#[test]
fn documents_are_accepted_equal_or_refused_with_a_reason() {
    sown("examples", targets::document_v1);
    sown("fuzz/seeds/document_whatsapp", targets::document_whatsapp);
}

#[test]
fn values_are_rendered_or_refused_with_a_reason() {
    sown("fuzz/seeds/values", targets::values);
}

#[test]
fn bodies_are_taken_or_refused_in_the_form_of_the_surface() {
    sown("fuzz/seeds/form_body", targets::form_body);
}

#[test]
fn cursors_lead_on_or_are_refused() {
    sown("fuzz/seeds/cursors", targets::cursors);
}
