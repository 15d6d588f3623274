//! Runs the seeds of the fuzz targets: `scripts/fuzz` starts from passing inputs, and the targets
//! compile.

#[path = "../../../fuzz/src/targets.rs"]
#[expect(
    unreachable_pub,
    dead_code,
    reason = "the fuzzer uses the same targets and measures their time"
)]
mod targets;

use std::{fs, path::Path};

/// Runs a target with each file of a directory.
fn run_seeds(directory: &str, target: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = fs::read_dir(root.join(directory)).unwrap().map(|file| file.unwrap().path());
    let seeds: Vec<_> = files.filter(|file| file.is_file()).collect();
    assert!(seeds.len() > 2, "{directory} has {} seeds", seeds.len());
    for seed in seeds {
        target(&fs::read(seed).unwrap());
    }
}

#[test]
fn documents_are_accepted_or_rejected_with_a_reason() {
    run_seeds("examples", targets::document_v1);
    run_seeds("fuzz/seeds/document_whatsapp", targets::document_whatsapp);
}

#[test]
fn values_are_rendered_or_rejected_with_a_reason() {
    run_seeds("fuzz/seeds/values", targets::values);
}

#[test]
fn bodies_are_accepted_or_rejected_in_the_format_of_the_surface() {
    run_seeds("fuzz/seeds/form_body", targets::form_body);
}

#[test]
fn cursors_are_accepted_or_rejected() {
    run_seeds("fuzz/seeds/cursors", targets::cursors);
}

#[test]
fn headers_are_accepted_or_rejected() {
    run_seeds("fuzz/seeds/headers", targets::headers);
}

#[test]
fn urls_of_endpoints_are_rejected_or_lead_where_they_seem_to_lead() {
    run_seeds("fuzz/seeds/webhook_url", targets::webhook_url);
}
