//! Lists the files of the console, so that they become part of the program.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

const ASSETS: &str = "src/console/assets";

/// Files that a browser loads. Others, such as licences, are not served.
const SERVED: [&str; 5] = ["css", "html", "js", "png", "svg"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={ASSETS}");
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(ASSETS);
    let mut files = Vec::new();
    if root.exists() {
        collect(&root, &mut files)?;
    }
    files.sort();
    let mut table = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy();
        let path = file.to_string_lossy();
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("console_assets.rs"), table)
}

/// Collects the files below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, files)?;
        } else if SERVED.contains(&extension) {
            files.push(path);
        }
    }
    Ok(())
}
