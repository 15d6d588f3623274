//! Imports between the top-level modules of a crate form no cycle.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use quote::ToTokens as _;
use syn::{
    Attribute, ItemMod, Macro, UseTree, Visibility,
    visit::{self, Visit},
};

use crate::{files_below, root};

/// Which top-level module of a crate imports which others.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn top_level_modules_import_each_other_in_one_direction() {
    for name in ["domain", "store", "upstream", "server", "cli"] {
        let imports = imports_of(&root().join("crates").join(name).join("src"));
        assert!(imports.values().any(|it| !it.is_empty()), "{name}: no import was found");
        assert_eq!(cycle(&imports), None, "{name} has a cycle of imports");
    }
}

#[test]
fn the_two_surfaces_share_code_only_through_the_api_module() {
    let directory = root().join("crates/server/src/api");
    for (surface, other) in [("v1", "graph"), ("graph", "v1")] {
        for (path, text) in files_below(&directory.join(surface), &["rs"]) {
            let names_other = [format!("{other}::"), format!("api::{other}")];
            let line = text.lines().find(|line| names_other.iter().any(|it| line.contains(it)));
            assert_eq!(line, None, "{} imports from {other}", path.display());
        }
    }
}

#[test]
fn a_cycle_is_found() {
    let edge = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    let chain = Imports::from([edge("a", "b"), edge("b", "c")]);
    assert_eq!(cycle(&chain), None);
    let circle = Imports::from([edge("a", "b"), edge("b", "c"), edge("c", "b")]);
    assert_eq!(cycle(&circle), Some(vec!["b".to_owned(), "c".to_owned()]));
}

fn imports_of(source: &Path) -> Imports {
    let files: Vec<(Vec<String>, syn::File)> = files_below(source, &["rs"])
        .into_iter()
        .map(|(path, text)| {
            let path = path.strip_prefix(source).unwrap().with_extension("");
            let module = path.iter().map(|it| it.to_string_lossy().into_owned()).collect();
            (module, syn::parse_file(&text).unwrap())
        })
        .collect();
    let is_root = |module: &[String]| matches!(module, [name] if name == "lib" || name == "main");
    let modules: BTreeSet<&String> =
        files.iter().filter(|(module, _)| !is_root(module)).map(|(module, _)| &module[0]).collect();
    // `crate::Name` counts as the module that the crate root re-exports it from, by its name or, in at
    // most one module, with all others.
    let mut exported = BTreeMap::new();
    for (_, file) in files.iter().filter(|(module, _)| is_root(module)) {
        for item in &file.items {
            if let syn::Item::Use(item) = item
                && !matches!(item.vis, Visibility::Inherited)
            {
                let mut paths = Vec::new();
                leaves(&item.tree, &mut Vec::new(), &mut paths);
                for path in paths {
                    let (name, module) = (path[path.len() - 1].clone(), path[0].clone());
                    let is_second_glob = name == "*" && exported.contains_key("*");
                    assert!(!is_second_glob, "{} re-exports two modules", source.display());
                    exported.insert(name, module);
                }
            }
        }
    }
    let mut imports = Imports::new();
    for (module, file) in files.iter().filter(|(module, _)| !is_root(module)) {
        let mut collector = PathCollector { module, paths: Vec::new() };
        collector.visit_file(file);
        let own = imports.entry(module[0].clone()).or_default();
        for first in collector.paths {
            let owner = || exported.get(&first).or_else(|| exported.get("*"));
            let target = if modules.contains(&first) { Some(&first) } else { owner() };
            own.extend(target.filter(|it| modules.contains(it) && **it != module[0]).cloned());
        }
    }
    imports
}

/// Collects the first segment below the crate root of every path in a file, except in its tests.
struct PathCollector<'a> {
    module: &'a [String],
    paths: Vec<String>,
}

impl PathCollector<'_> {
    fn add(&mut self, path: &[String]) {
        let first = match path.first().map(String::as_str) {
            Some("crate") => path.get(1).cloned(),
            Some("super") => {
                let supers = path.iter().take_while(|it| *it == "super").count();
                let parent = &self.module[..self.module.len().saturating_sub(supers)];
                parent.first().or(path.get(supers)).cloned()
            }
            _ => None,
        };
        self.paths.extend(first);
    }
}

impl<'ast> Visit<'ast> for PathCollector<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !module.attrs.iter().any(is_test_only) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        leaves(&item.tree, &mut Vec::new(), &mut paths);
        for path in &paths {
            self.add(path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|it| it.ident.to_string()).collect();
        self.add(&segments);
        visit::visit_path(self, path);
    }

    /// Arguments of macros are tokens, not paths.
    fn visit_macro(&mut self, invocation: &'ast Macro) {
        let tokens = invocation.tokens.to_string();
        for path in tokens.split("crate :: ").skip(1) {
            let name = path.split(|it: char| !it.is_alphanumeric() && it != '_').next();
            self.paths.extend(name.map(str::to_owned));
        }
        visit::visit_macro(self, invocation);
    }
}

fn is_test_only(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.to_token_stream().to_string().contains("test")
}

/// The full paths that a `use` declaration imports.
fn leaves(tree: &UseTree, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let leaf = |prefix: &[String], name: String| prefix.iter().cloned().chain([name]).collect();
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            leaves(&path.tree, prefix, found);
            prefix.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| leaves(tree, prefix, found));
        }
        UseTree::Name(name) => found.push(leaf(prefix, name.ident.to_string())),
        UseTree::Rename(name) => found.push(leaf(prefix, name.rename.to_string())),
        UseTree::Glob(_) => found.push(leaf(prefix, "*".to_owned())),
    }
}

/// The modules that are part of a cycle or import from one, after removing all others.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    let mut left = imports.clone();
    loop {
        let unimported: Vec<String> = left
            .keys()
            .filter(|name| !left.values().any(|imported| imported.contains(*name)))
            .cloned()
            .collect();
        if unimported.is_empty() {
            break;
        }
        for name in &unimported {
            left.remove(name);
        }
    }
    // What is left is imported by a cycle; drop what imports nothing of it.
    loop {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, imported| imported.iter().any(|name| names.contains(name)));
        if left.len() == before {
            break;
        }
    }
    (!left.is_empty()).then(|| left.into_keys().collect())
}
