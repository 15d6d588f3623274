// Shows the selected OpenAPI document in Swagger UI, with the entered credentials filled in.
"use strict";

const settings = document.getElementById("settings");
const status = document.getElementById("status");

/** Prepares a parameter for requests: entered values are filled in, examples of optional ones are only described. */
function prepare(parameter, values) {
  const value = parameter.in === "path" && values.get(parameter.name);
  if (value) {
    parameter.example = value;
    parameter.schema = { ...parameter.schema, default: value, example: value };
  } else if (!parameter.required && parameter.example !== undefined) {
    parameter.description = `${parameter.description ?? ""}\n\nExample: \`${parameter.example}\``;
    delete parameter.example;
  }
}

/** Prepares all parameters of an OpenAPI document. */
function prepareAll(description, values) {
  const lists = [Object.values(description.components?.parameters ?? {})];
  for (const item of Object.values(description.paths)) {
    lists.push(item.parameters ?? []);
    for (const operation of Object.values(item)) lists.push(operation.parameters ?? []);
  }
  lists.flat().forEach((parameter) => prepare(parameter, values));
  return description;
}

async function show() {
  const values = new FormData(settings);
  const response = await fetch(values.get("document"));
  if (!response.ok) throw new Error(`${values.get("document")} answers ${response.status}`);
  const description = prepareAll(await response.json(), values);
  const schemes = Object.keys(description.components.securitySchemes ?? {});
  const token = values.get("token");
  const reference = SwaggerUIBundle({
    dom_id: "#reference",
    spec: description,
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    onComplete: () => {
      if (token) schemes.forEach((name) => reference.preauthorizeApiKey(name, token));
    },
  });
}

async function update() {
  try {
    await show();
  } catch (error) {
    status.textContent = `The description cannot be shown: ${error.message}`;
  }
}

settings.elements.document.addEventListener("change", update);
settings.addEventListener("submit", (event) => {
  event.preventDefault();
  status.textContent = settings.elements.token.value
    ? "The requests below use these credentials."
    : "Without an access token, most requests are answered with 401.";
  update();
});
update();
