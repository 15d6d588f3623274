// Shows the selected OpenAPI document in Swagger UI, with the entered credentials filled in.
"use strict";

const settings = document.getElementById("settings");
const status = document.getElementById("status");

/** The document with the entered values as defaults of the path parameters. */
function withDefaults(description, values) {
  const fill = (parameter) => {
    const value = parameter.in === "path" && values.get(parameter.name);
    if (value) {
      parameter.example = value;
      parameter.schema = { ...parameter.schema, default: value, example: value };
    }
  };
  Object.values(description.components?.parameters ?? {}).forEach(fill);
  for (const item of Object.values(description.paths)) {
    (item.parameters ?? []).forEach(fill);
    for (const operation of Object.values(item)) (operation.parameters ?? []).forEach(fill);
  }
  return description;
}

async function show() {
  const values = new FormData(settings);
  const response = await fetch(values.get("document"));
  if (!response.ok) throw new Error(`${values.get("document")} answers ${response.status}`);
  const description = withDefaults(await response.json(), values);
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
