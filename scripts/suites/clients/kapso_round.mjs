// A full round with @kapso/whatsapp-cloud-api: every kind of template that its builder knows is
// created and read back, then lists, edits, deletions, uploads and refusals. Edits and uploads are
// not among its resources; they go through its own `request` and `fetch`.

import { GraphApiError, TemplateDefinition, WhatsAppClient } from "@kapso/whatsapp-cloud-api";

import { account, address, check, equal, missing, png, refused, round, token } from "./checks.mjs";

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

/** Announces a file and sends it in two pieces; gives its handle. */
async function upload(fileName, fileType, bytes) {
  const query = { fileName, fileType, fileLength: bytes.length };
  const begun = await client.request("POST", "app/uploads", { query, responseType: "json" });
  const place = `${address}/v24.0/${begun.id}`;
  const send = (piece, offset) =>
    client.fetch(place, { method: "POST", body: piece, headers: { file_offset: `${offset}` } });
  const half = bytes.length >> 1;
  await send(bytes.slice(0, half), 0);
  const { file_offset: there } = await (await client.fetch(place)).json();
  equal(`half of ${fileName} is there`, there, half);
  return (await (await send(bytes.slice(half), half)).json()).h;
}

/** The picture behind first bytes that make it something else. */
const behind = (first) => new Uint8Array([...new TextEncoder().encode(first), ...png]);

/** Name by name: components, and what else the template says. */
async function kinds() {
  const [image, video, document] = [
    sample("IMAGE", await upload("a.png", "image/png", png)),
    sample("VIDEO", await upload("a.mp4", "video/mp4", behind("\0\0\0\x18ftypmp42"))),
    sample("DOCUMENT", await upload("a.pdf", "application/pdf", behind("%PDF-1.7\n"))),
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

/** Creates every kind and reads it back; gives the ids by name. */
async function creates() {
  const made = {};
  for (const [name, [components, more]] of Object.entries(await kinds())) {
    const definition = { name, language: "en_US", category: "MARKETING", components, ...more };
    const built = TemplateDefinition.buildTemplateDefinition(definition);
    const { messageSendTtlSeconds, ...sent } = built; // its `create` does not pass the lifetime on
    try {
      const created = await templates.create({ businessAccountId, ...sent });
      const read = await templates.get({ businessAccountId, templateId: created.id });
      made[name] = created.id;
      equal(`${name}: what was sent is read back`, missing(sent, read), []);
      const { status, category } = created;
      equal(`${name}: answer`, { status, category }, { status: "APPROVED", category: sent.category });
      equal(`${name}: format`, read.parameterFormat, sent.parameterFormat ?? "POSITIONAL");
      equal(`${name}: id`, read.id, created.id);
    } catch (error) {
      check(`create ${name}`, false, error, error?.raw);
    }
  }
  return made;
}

async function reads(made) {
  const fields = "name,components,rejected_reason,quality_score";
  const read = await templates.get({ businessAccountId, templateId: made.image, fields });
  const keys = ["components", "id", "name", "qualityScore", "rejectedReason"];
  equal("only the fields that are asked for", Object.keys(read).sort(), keys);
  const served = await client.rawFetch(read.components[0].example.headerHandle[0]);
  equal("the sample is served", new Uint8Array(await served.arrayBuffer()), png);
}

async function languages(made) {
  const create = (language, text) =>
    templates.create({
      businessAccountId,
      name: "plain",
      language,
      category: "MARKETING",
      components: [{ type: "BODY", text }],
    });
  made.plain_de = (await create("de", "Guten Morgen")).id;
  made.plain_es = (await create("es", "Buenos dias")).id;
  const error = await refused("a language that is there", () => create("de", "Guten Abend"));
  equal("its code", [error.code, error.errorSubcode], [100, 2388024]);
}

async function lists(made) {
  const list = (query) => templates.list({ businessAccountId, ...query });
  const everything = await list({ limit: 250 });
  const ids = everything.data.map((it) => it.id);
  equal("all of them", [...ids].sort(), Object.values(made).sort());
  check("no other page", !("next" in everything.paging || "previous" in everything.paging));
  const usual = ["category", "components", "id", "language", "name", "parameterFormat", "status"];
  check("the usual fields", usual.every((key) => key in everything.data[0]), everything.data[0]);

  const walked = [];
  let page = await list({ limit: 4 });
  const first = page;
  for (;;) {
    walked.push(...page.data.map((it) => it.id));
    if (!page.paging.next) break;
    page = await list({ limit: 4, after: page.paging.cursors.after });
  }
  equal("page by page, by cursors", walked, ids);
  const second = await (await client.rawFetch(first.paging.next)).json();
  equal("a link needs nothing else", second.data.map((it) => it.id), ids.slice(4, 8));
  const back = await list({ limit: 4, before: second.paging.cursors.before });
  equal("and back", back.data.map((it) => it.id), ids.slice(0, 4));

  const names = async (query) => (await list({ limit: 250, ...query })).data.map((it) => it.name).sort();
  const codes = ["copy_code", "one_tap"];
  equal("one category", await names({ category: "AUTHENTICATION" }), codes);
  equal("in small letters", await names({ category: "authentication" }), codes);
  const utilities = ["document", "location", "named", "positional"];
  const both = ["UTILITY", "AUTHENTICATION"];
  const wanted = [...codes, ...utilities].sort();
  equal("two with a comma", await names({ category: both.join(",") }), wanted);
  equal("two as JSON", await names({ category: JSON.stringify(both) }), wanted);
  equal("two languages", await names({ language: "de,es" }), ["plain", "plain"]);
  equal("a name", await names({ name: "plain" }), ["plain", "plain", "plain"]);
  equal("a status", (await names({ status: "approved" })).length, ids.length);
  equal("another status", await names({ status: "REJECTED,PAUSED" }), []);
  const error = await refused("a status that is none", () => list({ status: "GOOD" }));
  equal("its code", [error.code, error.httpStatus], [100, 400]);
}

async function edits(made) {
  const text = "Hello {{1}}, your order {{2}} has left us today.";
  const components = [{ type: "BODY", text, example: { bodyText: [["Bob", "B-1"]] } }];
  const edit = (id, change) => client.request("POST", id, { body: change, responseType: "json" });
  equal("an edit", (await edit(made.positional, { components })).success, true);
  const read = await templates.get({ businessAccountId, templateId: made.positional });
  equal("is read back", read.components, components);
  const error = await refused("an edit of nothing", () => edit("17", { components }));
  equal("its code", [error.code, error.errorSubcode], [100, 33]);
}

async function refusals() {
  const bad = { businessAccountId, name: "Bad Name", language: "en_US", category: "UTILITY" };
  const error = await refused("a bad name", () => templates.create({ ...bad, components: [body] }));
  check("is an error of its own", error instanceof GraphApiError, error);
  equal("its codes", [error.httpStatus, error.code, error.errorSubcode], [400, 100, 2388046]);
  equal("its kind", [error.category, error.type], ["parameter", "OAuthException"]);
  const { errorUserTitle, errorUserMsg } = error.raw.error;
  check("its words", errorUserTitle && errorUserMsg && error.message && error.fbtraceId, error.raw);
  const stranger = new WhatsAppClient({ accessToken: "not-a-token", baseUrl: address });
  const unknown = await refused("a wrong token", () => stranger.templates.list({ businessAccountId }));
  equal("its code", [unknown.httpStatus, unknown.code], [401, 190]);
  check("asks for another", unknown.requiresTokenRefresh());
}

async function deletions(made) {
  const gone = (query) => templates.delete({ businessAccountId, ...query });
  const left = async () =>
    (await templates.list({ businessAccountId, name: "plain" })).data.map((it) => it.language).sort();
  equal("one language", await gone({ name: "plain", language: "de" }), { success: true });
  equal("leaves the others", await left(), ["en_US", "es"]);
  equal("a name", await gone({ name: "plain" }), { success: true });
  equal("takes all its languages", await left(), []);
  equal("another", await gone({ name: "named" }), { success: true });
  const get = () => templates.get({ businessAccountId, templateId: made.named });
  equal("what is gone", (await refused("is unknown", get)).code, 100);
  equal("nothing", (await refused("cannot be deleted", () => gone({ name: "named" }))).code, 100);
}

await round("@kapso/whatsapp-cloud-api", async () => {
  const made = await creates();
  await reads(made);
  await languages(made);
  await lists(made);
  await edits(made);
  await refusals();
  await deletions(made);
});
