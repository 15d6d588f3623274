// A full round with facebook-nodejs-business-sdk, Meta's own SDK for Node. It sends the token in the
// query and follows the links between pages as they stand.

import sdk from "facebook-nodejs-business-sdk";

import { account, address, check, equal, missing, png, refused, round, token } from "./checks.mjs";

const { FacebookAdsApi, WhatsAppBusinessAccount } = sdk;
Object.defineProperty(FacebookAdsApi, "GRAPH", { get: () => address });
const api = FacebookAdsApi.init(token, "en_US", false);
const waba = new WhatsAppBusinessAccount(account);

const body = { type: "BODY", text: "Good morning, all of you" };
const link = { type: "URL", text: "Shop", url: "https://shop.example/" };
const codes = [
  { type: "BODY", add_security_recommendation: true },
  { type: "BUTTONS", buttons: [{ type: "OTP", otp_type: "COPY_CODE" }] },
];

/** A sample, announced by the SDK; it has no call that sends bytes. */
async function upload() {
  const announced = { file_name: "a.png", file_length: png.length, file_type: "image/png" };
  const begun = await api.call("POST", ["17", "uploads"], announced);
  const place = `${address}/${FacebookAdsApi.VERSION}/${begun.id}?access_token=${token}`;
  const sent = await fetch(place, { method: "POST", body: png, headers: { file_offset: "0" } });
  return (await sent.json()).h;
}

async function kinds() {
  const example = { header_handle: [await upload()] };
  const header = { type: "HEADER", format: "IMAGE", example };
  const card = { components: [header, { type: "BUTTONS", buttons: [link] }] };
  const text = "Hello {{name}}, we are glad that you are here.";
  const body_text_named_params = [{ param_name: "name", example: "Ada" }];
  return {
    plain: { components: [body], allow_category_change: true },
    named: {
      components: [{ type: "BODY", text, example: { body_text_named_params } }],
      parameter_format: "NAMED",
      category: "UTILITY",
    },
    image: { components: [header, body, { type: "BUTTONS", buttons: [link] }] },
    carousel: { components: [body, { type: "CAROUSEL", cards: [card, card] }] },
    code: { components: codes, category: "AUTHENTICATION" },
  };
}

async function create(name, more, language = "en_US") {
  const sent = { name, language, category: "MARKETING", ...more };
  return [sent, (await waba.createMessageTemplate([], { ...sent }))._data];
}

/** All names that a list finds, page by page. */
async function names(params = {}) {
  let page = await waba.getMessageTemplates(["name", "status"], params);
  const found = [...page];
  while (page.hasNext()) {
    page = await page.next();
    found.push(...page);
  }
  return found.map((it) => it._data.name).sort();
}

await round("facebook-nodejs-business-sdk", async () => {
  const made = {};
  for (const [name, more] of Object.entries(await kinds())) {
    const [sent, created] = await create(name, more);
    made[name] = created.id;
    equal(`${name}: answer`, [created.status, created.category], ["APPROVED", sent.category]);
    const read = await api.call("GET", [created.id], { fields: Object.keys(sent).join(",") });
    delete sent.allow_category_change;
    equal(`${name}: what was sent is read back`, missing(sent, read), []);
  }
  const [, german] = await create("plain", { components: [body] }, "de");

  equal("the account", (await waba.get(["id", "name"]))._data, { id: account, name: "suite" });
  const all = [...Object.keys(made), "plain"].sort();
  equal("all of them, two by two", await names({ limit: 2 }), all);
  const both = ["UTILITY", "AUTHENTICATION"];
  equal("filters as lists", await names({ limit: 1, category: both }), ["code", "named"]);
  equal("a status that none has", await names({ status: ["REJECTED"] }), []);
  equal("a language", await names({ language: ["de"], status: ["APPROVED"] }), ["plain"]);
  const page = await waba.getMessageTemplates(["name"], { limit: 4, summary: true });
  equal("a total", page.summary.total_count, all.length);
  const first = page.map((it) => it._data.id);
  await page.next();
  check("a page back", page.hasPrevious());
  await page.previous();
  equal("is the page before", page.map((it) => it._data.id), first);

  const components = [{ type: "BODY", text: "Another text" }];
  equal("an edit", (await api.call("POST", [made.image], { components })).success, true);
  const read = await api.call("GET", [made.image], { fields: "components" });
  equal("is read back", read, { components, id: made.image });

  const otp = { name: "upserted", languages: ["en_US", "es"], category: "AUTHENTICATION" };
  await waba.createUpsertMessageTemplate([], { ...otp, components: codes });
  equal("an upsert", await names({ name: "upserted" }), ["upserted", "upserted"]);

  const error = await refused("a bad name", () => create("Bad Name", { components: [body] }));
  const { code, error_subcode, error_user_title, error_user_msg } = error.response;
  equal("its codes", [error.status, code, error_subcode], [400, 100, 2388046]);
  check("its words", error_user_title && error_user_msg && error.message, error.response);
  const unknown = await refused("an unknown id", () => api.call("GET", ["17"], {}));
  equal("its codes", [unknown.response.code, unknown.response.error_subcode], [100, 33]);

  await waba.deleteMessageTemplates({ name: "plain", hsm_id: german.id });
  equal("one language is deleted", await names({ name: "plain" }), ["plain"]);
  await waba.deleteMessageTemplates({ name: "plain" });
  equal("then the others", await names({ name: "plain" }), []);
  await waba.deleteMessageTemplates({ hsm_ids: [made.named, made.code] });
  equal("several by their ids", await names({ limit: 3 }), ["carousel", "image", "upserted", "upserted"]);
  const gone = await refused("what is gone", () => waba.deleteMessageTemplates({ name: "plain" }));
  equal("its code", gone.response.code, 100);

  const stranger = new WhatsAppBusinessAccount(account, {}, null, new FacebookAdsApi("no", "en_US", false));
  const wrong = await refused("a wrong token", () => stranger.getMessageTemplates(["name"], {}));
  equal("its code", [wrong.status, wrong.response.code], [401, 190]);
});
