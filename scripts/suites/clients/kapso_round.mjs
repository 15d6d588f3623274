// A round with @kapso/whatsapp-cloud-api: creates and reads back every kind of template that its
// builder supports, then tests lists, edits, deletions, uploads and errors. The client has no methods
// for edits and uploads, which use its `request` and `fetch`.

import { GraphApiError, TemplateDefinition, WhatsAppClient } from "@kapso/whatsapp-cloud-api";

import { account, address, check, checkEqual, differences, expectError, png, round, token } from "./checks.mjs";

const businessAccountId = account;
const client = new WhatsAppClient({ accessToken: token, baseUrl: address, graphVersion: "v24.0" });
const { templates } = client;

const body = { type: "BODY", text: "Good morning, all of you" };
const link = { type: "URL", text: "Shop", url: "https://shop.example/" };
const apps = [{ packageName: "com.example.shop", signatureHash: "K8a/AINcGX7" }];
const withButtons = (...buttons) => ({ type: "BUTTONS", buttons });
const sample = (format, handle) => ({ type: "HEADER", format, example: { headerHandle: [handle] } });
const codes = (otp, ...more) => [
  { type: "BODY", addSecurityRecommendation: true },
  ...more,
  withButtons({ type: "OTP", text: "Copy", ...otp }),
];

/** Uploads a file in two chunks; returns its handle. */
async function upload(fileName, fileType, bytes) {
  const query = { fileName, fileType, fileLength: bytes.length };
  const created = await client.request("POST", "app/uploads", { query, responseType: "json" });
  const url = `${address}/v24.0/${created.id}`;
  const send = (chunk, offset) =>
    client.fetch(url, { method: "POST", body: chunk, headers: { file_offset: `${offset}` } });
  const half = bytes.length >> 1;
  await send(bytes.slice(0, half), 0);
  const { file_offset: stored } = await (await client.fetch(url)).json();
  checkEqual(`half of ${fileName} is stored`, stored, half);
  return (await (await send(bytes.slice(half), half)).json()).h;
}

/** Returns the picture with a prefix that gives it another file type. */
const withPrefix = (prefix) => new Uint8Array([...new TextEncoder().encode(prefix), ...png]);

/** Returns components and other members of each kind of template, by name. */
async function kinds() {
  const [image, video, document] = [
    sample("IMAGE", await upload("a.png", "image/png", png)),
    sample("VIDEO", await upload("a.mp4", "video/mp4", withPrefix("\0\0\0\x18ftypmp42"))),
    sample("DOCUMENT", await upload("a.pdf", "application/pdf", withPrefix("%PDF-1.7\n"))),
  ];
  const card = { components: [image, { type: "BODY", text: "One" }, withButtons(link)] };
  const product = { type: "HEADER", format: "PRODUCT" };
  const view = withButtons({ type: "SPM", text: "View" });
  const category = "UTILITY";
  const code = "AUTHENTICATION";
  const two = "Hello {{1}}, your order {{2}} has come and waits for you.";
  const named = "Order {{order}} comes on {{day}}, as we said.";
  return {
    plain: [[body]],
    positional: [
      [
        { type: "HEADER", format: "TEXT", text: "Order {{1}}", example: { headerText: ["A-17"] } },
        { type: "BODY", text: two, example: { bodyText: [["Ada", "A-17"]] } },
        { type: "FOOTER", text: "The shop" },
      ],
      { category, parameterFormat: "POSITIONAL" },
    ],
    named: [
      [
        {
          type: "HEADER",
          format: "TEXT",
          text: "Hello {{who}}!",
          example: { headerTextNamedParams: [{ paramName: "who", example: "Ada" }] },
        },
        {
          type: "BODY",
          text: named,
          example: {
            bodyTextNamedParams: [
              { paramName: "order", example: "A-17" },
              { paramName: "day", example: "Monday" },
            ],
          },
        },
        withButtons({ type: "QUICK_REPLY", text: "Fine" }),
      ],
      { category, parameterFormat: "NAMED" },
    ],
    image: [[image, body]],
    video: [[video, body]],
    document: [[document, body], { category }],
    location: [[{ type: "HEADER", format: "LOCATION" }, body], { category }],
    every_button: [
      [
        body,
        withButtons(
          { type: "QUICK_REPLY", text: "Yes" },
          { type: "QUICK_REPLY", text: "No" },
          { type: "URL", text: "Track", url: "https://shop.example/{{1}}", example: ["A-17"] },
          link,
          { type: "PHONE_NUMBER", text: "Call", phoneNumber: "+15550001111" },
          { type: "COPY_CODE", example: "SAVE25" },
        ),
      ],
    ],
    flow: [
      [
        body,
        withButtons({
          type: "FLOW",
          text: "Sign up",
          flowId: "123",
          flowAction: "navigate",
          navigateScreen: "START",
          icon: "REVIEW",
        }),
      ],
    ],
    catalog: [[body, withButtons({ type: "CATALOG", text: "View catalog" })]],
    products: [
      [
        { type: "HEADER", format: "TEXT", text: "Our best" },
        body,
        withButtons({ type: "MPM", text: "View items" }),
      ],
    ],
    product: [[product, body, view]],
    offer: [
      [
        image,
        { type: "LIMITED_TIME_OFFER", limitedTimeOffer: { text: "Ends soon!", hasExpiration: true } },
        body,
        withButtons({ type: "COPY_CODE", example: "SAVE25" }, link),
      ],
    ],
    call_permission: [[body, { type: "CALL_PERMISSION_REQUEST" }]],
    carousel: [[body, { type: "CAROUSEL", cards: [card, card, card] }]],
    product_carousel: [
      [body, { type: "CAROUSEL", cards: Array(2).fill({ components: [product, view] }) }],
    ],
    copy_code: [
      codes({ otpType: "COPY_CODE" }, { type: "FOOTER", codeExpirationMinutes: 5 }),
      { category: code, messageSendTtlSeconds: 60 },
    ],
    one_tap: [
      codes({ otpType: "ONE_TAP", autofillText: "Fill", supportedApps: apps }),
      { category: code },
    ],
  };
}

/** Creates every kind of template and reads it back; returns the ids by name. */
async function creates() {
  const idsByName = {};
  for (const [name, [components, more]] of Object.entries(await kinds())) {
    const definition = { name, language: "en_US", category: "MARKETING", components, ...more };
    const built = TemplateDefinition.buildTemplateDefinition(definition);
    const { messageSendTtlSeconds, ...sent } = built; // `create` of this client drops the lifetime
    try {
      const created = await templates.create({ businessAccountId, ...sent });
      const read = await templates.get({ businessAccountId, templateId: created.id });
      idsByName[name] = created.id;
      checkEqual(`${name}: the template is read back as sent`, differences(sent, read), []);
      const { status, category } = created;
      checkEqual(`${name}: response`, { status, category }, { status: "APPROVED", category: sent.category });
      checkEqual(`${name}: format`, read.parameterFormat, sent.parameterFormat ?? "POSITIONAL");
      checkEqual(`${name}: id`, read.id, created.id);
    } catch (error) {
      check(`create ${name}`, false, error, error?.raw);
    }
  }
  return idsByName;
}

async function reads(idsByName) {
  const fields = "name,components,rejected_reason,quality_score";
  const read = await templates.get({ businessAccountId, templateId: idsByName.image, fields });
  const keys = ["components", "id", "name", "qualityScore", "rejectedReason"];
  checkEqual("only the requested fields are returned", Object.keys(read).sort(), keys);
  const served = await client.rawFetch(read.components[0].example.headerHandle[0]);
  checkEqual("the sample is served", new Uint8Array(await served.arrayBuffer()), png);
}

async function languages(idsByName) {
  const create = (language, text) =>
    templates.create({
      businessAccountId,
      name: "plain",
      language,
      category: "MARKETING",
      components: [{ type: "BODY", text }],
    });
  idsByName.plain_de = (await create("de", "Guten Morgen")).id;
  idsByName.plain_es = (await create("es", "Buenos dias")).id;
  const error = await expectError("an existing language is rejected", () => create("de", "Guten Abend"));
  checkEqual("the error codes match", [error.code, error.errorSubcode], [100, 2388024]);
}

async function lists(idsByName) {
  const list = (query) => templates.list({ businessAccountId, ...query });
  const allTemplates = await list({ limit: 250 });
  const ids = allTemplates.data.map((it) => it.id);
  checkEqual("all templates are listed", [...ids].sort(), Object.values(idsByName).sort());
  check("there is no other page", !("next" in allTemplates.paging || "previous" in allTemplates.paging));
  const defaultFields = ["category", "components", "id", "language", "name", "parameterFormat", "status"];
  check(
    "the default fields are returned",
    defaultFields.every((key) => key in allTemplates.data[0]),
    allTemplates.data[0],
  );

  const paged = [];
  let page = await list({ limit: 4 });
  const first = page;
  for (;;) {
    paged.push(...page.data.map((it) => it.id));
    if (!page.paging.next) break;
    page = await list({ limit: 4, after: page.paging.cursors.after });
  }
  checkEqual("cursors lead through all pages", paged, ids);
  const second = await (await client.rawFetch(first.paging.next)).json();
  checkEqual("a page link works unchanged", second.data.map((it) => it.id), ids.slice(4, 8));
  const back = await list({ limit: 4, before: second.paging.cursors.before });
  checkEqual("a cursor leads back", back.data.map((it) => it.id), ids.slice(0, 4));

  const names = async (query) => (await list({ limit: 250, ...query })).data.map((it) => it.name).sort();
  const codes = ["copy_code", "one_tap"];
  checkEqual("a category filter works", await names({ category: "AUTHENTICATION" }), codes);
  checkEqual("a lower-case category works", await names({ category: "authentication" }), codes);
  const utilities = ["document", "location", "named", "positional"];
  const both = ["UTILITY", "AUTHENTICATION"];
  const expected = [...codes, ...utilities].sort();
  checkEqual("two categories separated by a comma", await names({ category: both.join(",") }), expected);
  checkEqual("two categories as JSON", await names({ category: JSON.stringify(both) }), expected);
  checkEqual("two languages", await names({ language: "de,es" }), ["plain", "plain"]);
  checkEqual("a name filter works", await names({ name: "plain" }), ["plain", "plain", "plain"]);
  checkEqual("a status filter works", (await names({ status: "approved" })).length, ids.length);
  checkEqual("statuses without templates give an empty list", await names({ status: "REJECTED,PAUSED" }), []);
  const error = await expectError("an unknown status is rejected", () => list({ status: "GOOD" }));
  checkEqual("the error codes match", [error.code, error.httpStatus], [100, 400]);
}

async function edits(idsByName) {
  const text = "Hello {{1}}, your order {{2}} has left us today.";
  const components = [{ type: "BODY", text, example: { bodyText: [["Bob", "B-1"]] } }];
  const edit = (id, change) => client.request("POST", id, { body: change, responseType: "json" });
  checkEqual("an edit succeeds", (await edit(idsByName.positional, { components })).success, true);
  const read = await templates.get({ businessAccountId, templateId: idsByName.positional });
  checkEqual("the edit is read back", read.components, components);
  const error = await expectError(
    "an edit of an unknown template is rejected",
    () => edit("17", { components }),
  );
  checkEqual("the error codes match", [error.code, error.errorSubcode], [100, 33]);
}

async function refusals() {
  const bad = { businessAccountId, name: "Bad Name", language: "en_US", category: "UTILITY" };
  const error = await expectError(
    "an invalid name is rejected",
    () => templates.create({ ...bad, components: [body] }),
  );
  check("the error is a GraphApiError", error instanceof GraphApiError, error);
  checkEqual("the error codes match", [error.httpStatus, error.code, error.errorSubcode], [400, 100, 2388046]);
  checkEqual("the error type matches", [error.category, error.type], ["parameter", "OAuthException"]);
  const { errorUserTitle, errorUserMsg } = error.raw.error;
  check("the error has texts", errorUserTitle && errorUserMsg && error.message && error.fbtraceId, error.raw);
  const stranger = new WhatsAppClient({ accessToken: "not-a-token", baseUrl: address });
  const unknown = await expectError(
    "an invalid token is rejected",
    () => stranger.templates.list({ businessAccountId }),
  );
  checkEqual("the error codes match", [unknown.httpStatus, unknown.code], [401, 190]);
  check("the client asks for a new token", unknown.requiresTokenRefresh());
}

async function deletions(idsByName) {
  const remove = (query) => templates.delete({ businessAccountId, ...query });
  const left = async () =>
    (await templates.list({ businessAccountId, name: "plain" })).data.map((it) => it.language).sort();
  checkEqual("one language is deleted", await remove({ name: "plain", language: "de" }), { success: true });
  checkEqual("other languages remain", await left(), ["en_US", "es"]);
  checkEqual("a name is deleted", await remove({ name: "plain" }), { success: true });
  checkEqual("all languages of the name are deleted", await left(), []);
  checkEqual("another name is deleted", await remove({ name: "named" }), { success: true });
  const get = () => templates.get({ businessAccountId, templateId: idsByName.named });
  checkEqual("its error code", (await expectError("a deleted template is unknown", get)).code, 100);
  const again = await expectError(
    "a deleted template cannot be deleted again",
    () => remove({ name: "named" }),
  );
  checkEqual("its error code", again.code, 100);
}

await round("@kapso/whatsapp-cloud-api", async () => {
  const idsByName = await creates();
  await reads(idsByName);
  await languages(idsByName);
  await lists(idsByName);
  await edits(idsByName);
  await refusals();
  await deletions(idsByName);
});
