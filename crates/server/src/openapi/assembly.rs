//! Makes a document from its YAML source and the parts that are generated or shared.

use super::{generated, links, problems, tree::Node};

/// The file in which `graph.yaml` finds shared components.
const SHARED_FILE: &str = "v1.yaml";

/// Replaces everything that is marked: `x-generated`, `x-links` and `x-problems`.
pub(super) fn assemble(mut document: Node) -> Node {
    let mut slugs = Vec::new();
    expand(&mut document, &mut slugs);
    slugs.sort();
    slugs.dedup();
    let examples = document.entry("components").entry("examples");
    for slug in slugs {
        *examples.entry(&slug) = problems::example(&slug);
    }
    document
}

fn expand(node: &mut Node, slugs: &mut Vec<String>) {
    if let Some(name) = node.remove("x-generated") {
        generated::fill(node, name.as_str().unwrap_or_default());
    }
    if let Some(kind) = node.remove("x-links") {
        *node.entry("links") = links::of_kind(kind.as_str().unwrap_or_default());
    }
    if let Some(listed) = node.remove("x-problems") {
        problems::describe(node, &listed);
        slugs.extend(listed.as_strings().map(str::to_owned));
    }
    for child in node.children_mut() {
        expand(child, slugs);
    }
}

/// Copies the components that a document takes from the shared one, and those that they refer to.
pub(super) fn copy_shared(mut document: Node, shared: &Node) -> Node {
    let mut pending = Vec::new();
    localise(&mut document, &mut pending);
    while let Some(reference) = pending.pop() {
        let path: Vec<&str> = reference.split('/').collect();
        let &["#", "components", section, name] = &path[..] else {
            panic!("`{reference}` is not a component")
        };
        let target = document.entry("components").entry(section);
        if target.get(name).is_some() {
            continue;
        }
        let component =
            ["components", section, name].iter().try_fold(shared, |it, key| it.get(key));
        let component = component.unwrap_or_else(|| panic!("`{reference}` does not exist"));
        *target.entry(name) = component.clone();
        collect_references(component, &mut pending);
    }
    document
}

/// Removes the file name from references, and lists those that had one.
fn localise(node: &mut Node, found: &mut Vec<String>) {
    let local = node.as_str().and_then(|text| text.strip_prefix(SHARED_FILE)).map(str::to_owned);
    if let Some(local) = local.filter(|it| it.starts_with("#/")) {
        found.push(local.clone());
        *node = Node::string(local);
    }
    for child in node.children_mut() {
        localise(child, found);
    }
}

/// Lists the references in `$ref` and in the mapping of a discriminator.
fn collect_references(node: &Node, found: &mut Vec<String>) {
    if let Some(text) = node.as_str()
        && text.starts_with("#/components/")
    {
        found.push(text.to_owned());
    }
    for child in node.children() {
        collect_references(child, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_parts_are_replaced() {
        let document = assemble(Node::parse(
            "{page: {type: integer, x-generated: 'limit:page', maximum: 1}, \
             response: {description: Bad., x-problems: [bad-request], x-links: event-in-list, \
                        content: {a/b: {}}}}",
        ));
        assert_eq!(document.get("page"), Some(&Node::parse("{type: integer, maximum: 100}")));
        let response = document.get("response").unwrap();
        let description = response.get("description").and_then(Node::as_str).unwrap();
        assert!(description.starts_with("Bad.\n\n- `bad-request`: "), "{description}");
        assert!(response.get("links").unwrap().get("next").is_some());
        let example = document.get("components").unwrap().get("examples").unwrap();
        assert!(example.get("bad-request").unwrap().get("value").is_some());
    }

    #[test]
    fn shared_components_are_copied_with_what_they_refer_to() {
        let shared = Node::parse(
            "components: {schemas: {A: {$ref: '#/components/schemas/B'}, B: {type: string}, C: {}}}",
        );
        let document = Node::parse("{a: {$ref: 'v1.yaml#/components/schemas/A'}}");
        let expected = Node::parse(
            "{a: {$ref: '#/components/schemas/A'}, \
              components: {schemas: {A: {$ref: '#/components/schemas/B'}, B: {type: string}}}}",
        );
        assert_eq!(copy_shared(document, &shared), expected);
    }
}
