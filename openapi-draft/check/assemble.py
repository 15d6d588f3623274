"""Assembles the served documents from the YAML sources, as the service does at start.

    assemble.py SOURCE_DIR OUT_DIR [PROBLEMS_JSON]

- graph.yaml refers to schemas, headers and parameters of v1.yaml; those are copied into the result.
- `x-problems` of a response becomes its description and its examples.
- `x-links` of a response becomes OpenAPI links.
- `x-generated` is removed. The service replaces the value next to it; this script keeps the placeholder.

PROBLEMS_JSON is the problem catalogue: slug -> {"summary", "value"}. Without it, responses have no problem
examples.
"""

import copy
import json
import pathlib
import sys

import yaml

TEMPLATE_CALLS = {
    "show": ("showTemplate", "Reads the template."),
    "edit": ("editTemplate", "Creates a new version."),
    "delete": ("deleteTemplate", "Deletes the template."),
    "versions": ("listVersions", "Lists the versions."),
    "review": ("reviewTemplate", "Decides on the template."),
    "render": ("renderTemplate", "Fills in values."),
}
WEBHOOK_CALLS = {
    "show": ("showWebhook", "Reads the endpoint."),
    "edit": ("editWebhook", "Changes the endpoint."),
    "delete": ("deleteWebhook", "Deletes the endpoint."),
    "rotate": ("rotateSecret", "Rotates the secret."),
    "deliveries": ("listDeliveries", "Lists the deliveries."),
    "replay": ("replayEvents", "Sends events again."),
}
FROM_BODY = "$response.body#/id"
FROM_LIST = "$response.body#/data/0/id"
FROM_PATH = "$request.path.id"
# Calls that take the ETag of the response, by header.
CONDITIONAL = {
    "showTemplate": "If-None-Match",
    "editTemplate": "If-Match",
    "deleteTemplate": "If-Match",
    "reviewTemplate": "If-Match",
}


def link(operation, description, **parameters):
    base = {"path.phone_number_id": "$request.path.phone_number_id", "path.key": "$request.path.key"}
    return {"operationId": operation, "description": description, "parameters": {**base, **parameters}}


def calls(table, source, has_etag=False):
    result = {}
    for name, (operation, description) in table.items():
        parameters = {"path.id": source}
        if has_etag and operation in CONDITIONAL:
            parameters[f"header.{CONDITIONAL[operation]}"] = "$response.header.ETag"
        result[name] = link(operation, description, **parameters)
    return result


def next_page(operation, **parameters):
    after = {"query.after": "$response.body#/paging/cursors/after"}
    return {"next": link(operation, "Reads the next page.", **parameters, **after)}


def links(kind):
    path = {"path.id": FROM_PATH}
    match kind:
        case "template-in-body":
            return calls(TEMPLATE_CALLS, FROM_BODY)
        case "template-in-list":
            return {**calls(TEMPLATE_CALLS, FROM_LIST), **next_page("listTemplates")}
        case "template-in-path":
            return calls(TEMPLATE_CALLS, FROM_PATH, has_etag=True)
        case "version-in-list":
            version = {"query.version": "$response.body#/data/0/version"}
            show = link("showTemplate", "Reads the template in this version.", **path, **version)
            return {"show": show, **next_page("listVersions", **path)}
        case "event-in-list":
            return next_page("listEvents")
        case "webhook-in-body":
            return calls(WEBHOOK_CALLS, FROM_BODY)
        case "webhook-in-list":
            return calls(WEBHOOK_CALLS, FROM_LIST)
        case "webhook-in-path":
            return calls(WEBHOOK_CALLS, FROM_PATH)
        case "delivery-in-list":
            return {**calls(WEBHOOK_CALLS, FROM_PATH), **next_page("listDeliveries", **path)}
    raise ValueError(kind)


def expand(node, problems, used):
    if isinstance(node, list):
        for item in node:
            expand(item, problems, used)
    if not isinstance(node, dict):
        return
    node.pop("x-generated", None)
    if "x-links" in node:
        node["links"] = links(node.pop("x-links"))
    if "x-problems" in node:
        slugs = node.pop("x-problems")
        if problems:
            lines = [f"- `{slug}`: {problems[slug]['summary']}." for slug in slugs]
            node["description"] = "\n".join([node["description"], "", *lines])
            for content in node["content"].values():
                content["examples"] = {slug: {"$ref": f"#/components/examples/{slug}"} for slug in slugs}
            used.update(slugs)
    for value in node.values():
        expand(value, problems, used)


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" or (isinstance(value, str) and value.startswith("v1.yaml#/")):
                yield value
            elif key == "mapping" and isinstance(value, dict):
                yield from (it for it in value.values() if isinstance(it, str))
            else:
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def localise(node):
    if isinstance(node, dict):
        return {key: localise(value) for key, value in node.items()}
    if isinstance(node, list):
        return [localise(item) for item in node]
    if isinstance(node, str) and node.startswith("v1.yaml#/"):
        return node.removeprefix("v1.yaml")
    return node


def merge(graph, v1):
    """Copies the components of v1 that graph refers to, and those that they refer to."""
    pending = {it.removeprefix("v1.yaml") for it in references(graph) if it.startswith("v1.yaml#/")}
    graph = localise(graph)
    while pending:
        _, components, kind, name = pending.pop().split("/")
        target = graph[components].setdefault(kind, {})
        if name in target:
            continue
        target[name] = copy.deepcopy(v1[components][kind][name])
        pending.update(it for it in references(target[name]) if it.startswith("#/"))
    return graph


def main():
    source, out = map(pathlib.Path, sys.argv[1:3])
    problems = json.loads(pathlib.Path(sys.argv[3]).read_text()) if len(sys.argv) > 3 else {}
    out.mkdir(parents=True, exist_ok=True)
    v1 = yaml.safe_load((source / "v1.yaml").read_text())
    documents = {"v1": v1}
    if (source / "graph.yaml").exists():
        documents["graph"] = merge(yaml.safe_load((source / "graph.yaml").read_text()), v1)
    for name, document in documents.items():
        document = copy.deepcopy(document)  # YAML aliases share nodes
        document = json.loads(json.dumps(document))
        used = set()
        expand(document, problems, used)
        for slug in sorted(used):
            document["components"].setdefault("examples", {})[slug] = problems[slug]
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        (out / f"{name}.json").write_text(text)
        operations = [o for i in document["paths"].values() for m, o in i.items() if m in ("get", "post", "patch", "delete")]
        print(f"{name}.json: {len(text.encode())} bytes, {len(operations)} operations, {len(document['components']['schemas'])} schemas")


main()
