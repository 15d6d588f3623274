"""Checks that an OpenAPI document is easy to read and to generate clients from: structure.py DOCUMENT…"""

import pathlib
import re
import sys

from document import Document

MAX_BYTES = 400 * 1024
FORBIDDEN = ("not", "patternProperties", "if", "dependentSchemas")


def is_inline_object(schema):
    return "$ref" not in schema and ("properties" in schema or schema.get("type") == "object")


def check_schema(where, schema, found, named=False):
    if not isinstance(schema, dict):
        found.append(f"{where}: {schema!r} is not a schema")
        return
    found.extend(f"{where}: uses `{it}`" for it in FORBIDDEN if it in schema)
    types = schema.get("type", [])
    if "null" in ([types] if isinstance(types, str) else types):
        found.append(f"{where}: uses the type null")
    if isinstance(types, list) and types:
        found.append(f"{where}: has several types")
    if not named and is_inline_object(schema):
        found.append(f"{where}: is an object without a name")
    if not named and "enum" in schema and "parameters" not in where:
        found.append(f"{where}: is an enumeration without a name")
    if named and not schema.get("description"):
        found.append(f"{where}: has no description")
    for name, member in schema.get("properties", {}).items():
        if named and name == re.sub(r"(?<!^)(?=[A-Z])", "_", where).lower():
            found.append(f"{where}.{name}: has the name of its schema, which hides it in generated code")
        if "$ref" not in member and not member.get("description"):
            found.append(f"{where}.{name}: has no description")
        check_schema(f"{where}.{name}", member, found)
    for name in schema.get("required", []):
        if name not in schema.get("properties", {}):
            found.append(f"{where}: requires {name}, which has no schema")
    for key in ("oneOf", "anyOf", "allOf"):
        for index, member in enumerate(schema.get(key, [])):
            check_schema(f"{where}.{key}[{index}]", member, found)
        if key == "oneOf" and sum("$ref" in it for it in schema.get(key, [])) > 1 and "discriminator" not in schema:
            found.append(f"{where}: has no discriminator")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            check_schema(f"{where}.{key}", schema[key], found)


def check(name):
    document = Document(pathlib.Path(name).read_text())
    root, found = document.root, []
    if document.size > MAX_BYTES:
        found.append(f"has {document.size} bytes, more than {MAX_BYTES}")
    for schema_name, schema in root["components"]["schemas"].items():
        check_schema(schema_name, schema, found, named=True)
    tags = {it["name"] for it in root["tags"]}
    examples = 0

    def check_examples(where, media):
        nonlocal examples
        values = [it for it in (media.get("example"),) if it is not None]
        values += [document.resolve(it)["value"] for it in media.get("examples", {}).values()]
        for value in values:
            examples += 1
            found.extend(f"{where}: example: {it}" for it in document.errors(media["schema"], value))
            found.extend(f"{where}: example: {it} is not documented" for it in document.undocumented(media["schema"], value))

    for operation_id, (_, path, operation) in document.operations.items():
        if not re.fullmatch(r"[a-z][A-Za-z]+", operation_id):
            found.append(f"{operation_id}: is not a method name")
        if len(operation.get("tags", [])) != 1 or not tags.issuperset(operation["tags"]):
            found.append(f"{operation_id}: does not have exactly one known tag")
        for key in ("summary", "description"):
            if not operation.get(key):
                found.append(f"{operation_id}: has no {key}")
        for parameter in [*root["paths"][path].get("parameters", []), *operation.get("parameters", [])]:
            parameter = document.resolve(parameter)
            check_schema(f"{operation_id}.parameters.{parameter['name']}", parameter["schema"], found)
            found.extend(f"{operation_id}.{parameter['name']}: {it}" for it in document.errors(parameter["schema"], parameter["example"]))
        body = operation.get("requestBody")
        for media_type, media in (body or {}).get("content", {}).items():
            check_schema(f"{operation_id}.body", media["schema"], found)
            if not media_type.endswith("octet-stream"):
                check_examples(f"{operation_id}.body", media)
        for status, response in operation["responses"].items():
            for media in document.resolve(response).get("content", {}).values():
                if "schema" in media:
                    check_schema(f"{operation_id}.{status}", media["schema"], found)
                    check_examples(f"{operation_id}.{status}", media)
    print(
        f"{name}: {document.size} bytes, {len(document.operations)} operations, "
        f"{len(root['components']['schemas'])} schemas, {examples} examples: {len(found)} findings"
    )
    for it in found:
        print(f"  {it}")
    return not found


sys.exit(not all([check(it) for it in sys.argv[1:]]))
