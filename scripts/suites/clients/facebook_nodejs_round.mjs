// A round with facebook-nodejs-business-sdk, Meta's own SDK for Node. It sends the token in the query
// and follows page links unchanged.

import sdk from "facebook-nodejs-business-sdk";

import { account, address, check, checkEqual, differences, expectError, png, round, token } from "./checks.mjs";

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

/** Uploads a sample. The SDK creates the session; it has no call to send bytes. */
async function upload() {
  const session = { file_name: "a.png", file_length: png.length, file_type: "image/png" };
  const created = await api.call("POST", ["17", "uploads"], session);
  const url = `${address}/${FacebookAdsApi.VERSION}/${created.id}?access_token=${token}`;
  const sent = await fetch(url, { method: "POST", body: png, headers: { file_offset: "0" } });
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

/** Returns the names of all templates in a list, page by page. */
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
  const idsByName = {};
  for (const [name, more] of Object.entries(await kinds())) {
    const [sent, created] = await create(name, more);
    idsByName[name] = created.id;
    checkEqual(`${name}: response`, [created.status, created.category], ["APPROVED", sent.category]);
    const read = await api.call("GET", [created.id], { fields: Object.keys(sent).join(",") });
    delete sent.allow_category_change;
    checkEqual(`${name}: the template is read back as sent`, differences(sent, read), []);
  }
  const [, german] = await create("plain", { components: [body] }, "de");

  checkEqual("the account is read", (await waba.get(["id", "name"]))._data, { id: account, name: "suite" });
  const all = [...Object.keys(idsByName), "plain"].sort();
  checkEqual("all templates are listed, two per page", await names({ limit: 2 }), all);
  const both = ["UTILITY", "AUTHENTICATION"];
  checkEqual("filters can be lists", await names({ limit: 1, category: both }), ["code", "named"]);
  checkEqual("a status without templates gives an empty list", await names({ status: ["REJECTED"] }), []);
  checkEqual("a language filter works", await names({ language: ["de"], status: ["APPROVED"] }), ["plain"]);
  const page = await waba.getMessageTemplates(["name"], { limit: 4, summary: true });
  checkEqual("the summary contains the total", page.summary.total_count, all.length);
  const first = page.map((it) => it._data.id);
  await page.next();
  check("the second page has a previous page", page.hasPrevious());
  await page.previous();
  checkEqual("the previous page is the first page", page.map((it) => it._data.id), first);

  const components = [{ type: "BODY", text: "Another text" }];
  checkEqual("an edit succeeds", (await api.call("POST", [idsByName.image], { components })).success, true);
  const read = await api.call("GET", [idsByName.image], { fields: "components" });
  checkEqual("the edit is read back", read, { components, id: idsByName.image });

  const otp = { name: "upserted", languages: ["en_US", "es"], category: "AUTHENTICATION" };
  await waba.createUpsertMessageTemplate([], { ...otp, components: codes });
  checkEqual("an upsert creates both languages", await names({ name: "upserted" }), ["upserted", "upserted"]);

  const error = await expectError(
    "an invalid name is rejected",
    () => create("Bad Name", { components: [body] }),
  );
  const { code, error_subcode, error_user_title, error_user_msg } = error.response;
  checkEqual("the error codes match", [error.status, code, error_subcode], [400, 100, 2388046]);
  check("the error has texts", error_user_title && error_user_msg && error.message, error.response);
  const unknown = await expectError("an unknown id is rejected", () => api.call("GET", ["17"], {}));
  checkEqual("the error codes match", [unknown.response.code, unknown.response.error_subcode], [100, 33]);

  await waba.deleteMessageTemplates({ name: "plain", hsm_id: german.id });
  checkEqual("one language is deleted", await names({ name: "plain" }), ["plain"]);
  await waba.deleteMessageTemplates({ name: "plain" });
  checkEqual("the other languages are deleted", await names({ name: "plain" }), []);
  await waba.deleteMessageTemplates({ hsm_ids: [idsByName.named, idsByName.code] });
  checkEqual(
    "several templates are deleted by id",
    await names({ limit: 3 }),
    ["carousel", "image", "upserted", "upserted"],
  );
  const again = await expectError(
    "a deleted template cannot be deleted again",
    () => waba.deleteMessageTemplates({ name: "plain" }),
  );
  checkEqual("the error codes match", again.response.code, 100);

  const stranger = new WhatsAppBusinessAccount(account, {}, null, new FacebookAdsApi("no", "en_US", false));
  const wrong = await expectError(
    "an invalid token is rejected",
    () => stranger.getMessageTemplates(["name"], {}),
  );
  checkEqual("the error codes match", [wrong.status, wrong.response.code], [401, 190]);
});
