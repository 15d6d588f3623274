"""Uses the client that openapi-generator (Python) generated, without changes: openapi_generator_round.py"""

import os
import time

import openapi_client as galley

AT = (os.environ["SUITE_PHONE"], os.environ["SUITE_KEY"])
configuration = galley.Configuration(host=os.environ["SUITE_ADDRESS"], access_token=os.environ["SUITE_TOKEN"])
templates = galley.TemplatesApi(galley.ApiClient(configuration))

body = galley.BodyComponent(type="BODY", text="Hi {{1}}.", example=galley.BodyExample(body_text=[["Ada"]]))
document = galley.NewTemplate(
    name=f"order_shipped_{time.time_ns():x}",
    language="en_US",
    category="UTILITY",
    allow_category_change=True,
    components=[galley.Component(galley.HeaderComponent(galley.TextHeader(type="HEADER", format="TEXT", text="Hello"))), galley.Component(body)],
)
id = templates.create_template(*AT, document).id
read = templates.show_template(*AT, id)
assert read.name == document.name, read
assert isinstance(read.components[1].actual_instance, galley.BodyComponent), read.components
rendered = templates.render_template(*AT, id, galley.Values(body=galley.TextValues(["Ada"])))
assert rendered.texts.body == "Hi Ada.", rendered
try:
    templates.create_template(*AT, document)
    raise AssertionError("the name is unique")
except galley.ApiException as error:
    assert error.data.type.actual_instance == galley.ProblemType.NAME_TAKEN, error
    assert error.data.existing_id == id, error
document.language = "english"
try:
    templates.create_template(*AT, document)
    raise AssertionError("the language is invalid")
except galley.ApiException as error:
    problem = error.data.actual_instance
    assert isinstance(problem, galley.InvalidTemplateProblem), error
    assert problem.violations[0].rule.actual_instance == "language-form", problem
templates.delete_template(*AT, id)
print("openapi-generator: create, read, render, 409 and 422 passed")
