"""Reads an OpenAPI document, and validates responses against it."""

import json
import re

import jsonschema

METHODS = ("get", "post", "put", "patch", "delete")


class Document:
    def __init__(self, text):
        self.root = json.loads(text)
        self.size = len(text.encode())
        self.operations = {
            operation["operationId"]: (method, path, {**item, **operation})
            for path, item in self.root["paths"].items()
            for method, operation in item.items()
            if method in METHODS
        }

    def resolve(self, node):
        while "$ref" in node:
            target = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            node = target
        return node

    def validator(self, schema):
        # The schema is validated inside the document, so that its references resolve.
        return jsonschema.Draft202012Validator(
            {**schema, "components": self.root["components"]},
            format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
        )

    def errors(self, schema, value):
        return [f"{it.json_path}: {it.message[:300]}" for it in self.validator(schema).iter_errors(value)]

    def undocumented(self, schema, value, path="$"):
        """Returns the members of a valid value that its schema does not describe."""
        schema = self.resolve(schema)
        found = []
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                fitting = [it for it in schema[choice] if self.validator(it).is_valid(value)]
                return min((self.undocumented(it, value, path) for it in fitting), key=len, default=[path])
        if isinstance(value, list):
            items = schema.get("items", {})
            return [it for i, item in enumerate(value) for it in self.undocumented(items, item, f"{path}[{i}]")]
        if not isinstance(value, dict):
            return []
        properties = {}
        extra = schema.get("additionalProperties")
        for part in [schema, *map(self.resolve, schema.get("allOf", []))]:
            properties |= part.get("properties", {})
        for name, member in value.items():
            if name in properties:
                found += self.undocumented(properties[name], member, f"{path}.{name}")
            elif isinstance(extra, dict):
                found += self.undocumented(extra, member, f"{path}.{name}")
            elif extra is not True:
                found.append(f"{path}.{name}")
        return found

    def unknown_ids(self, value):
        """Yields rule ids and problem types that the document does not list, although it permits others."""
        schemas = self.root["components"]["schemas"]
        listed = {it for name in ("RuleId", "WarningId", "ProblemType") for it in schemas.get(name, {}).get("enum", [])}
        if isinstance(value, dict):
            ids = [value[key] for key in ("rule", "type") if isinstance(value.get(key), str)]
            for id in ids:
                if ("pointer" in value or id.startswith("/problems/")) and id not in listed:
                    yield f"{id} is not listed"
        for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            yield from self.unknown_ids(member)

    def response(self, operation_id, status):
        responses = self.operations[operation_id][2]["responses"]
        for key in (str(status), f"{status // 100}XX", "default"):
            if key in responses:
                return self.resolve(responses[key])
        return None

    def check_response(self, operation_id, status, headers, body):
        """Returns what in a response differs from the document."""
        response = self.response(operation_id, status)
        if response is None:
            return [f"status {status} is not documented"]
        found = []
        for name, header in response.get("headers", {}).items():
            header = self.resolve(header)
            value = headers.get(name.lower())
            if value is None:
                if header.get("required"):
                    found.append(f"header {name} is missing")
                continue
            schema = self.resolve(header["schema"])
            parsed = int(value) if schema.get("type") == "integer" else value
            found += [f"header {name}: {it}" for it in self.errors(schema, parsed)]
        content = response.get("content", {})
        if not content:
            return found + ([f"has a body of {len(body)} bytes"] if body else [])
        media_type = headers.get("content-type", "").split(";")[0]
        if media_type not in content:
            return [*found, f"content type {media_type} is not documented"]
        schema = content[media_type].get("schema")
        if schema and re.search(r"[/+]json$", media_type):
            value = json.loads(body)
            errors = self.errors(schema, value) or list(self.unknown_ids(value))
            found += errors or [f"member {it} is not documented" for it in self.undocumented(schema, value)]
        return found
