// A story with @kapso/whatsapp-cloud-api and an emulator: review on the virtual clock, sends and their
// statuses. The client verifies and parses the webhooks.

import { GraphApiError, WhatsAppClient, buildTemplateSendPayload } from "@kapso/whatsapp-cloud-api";
import { normalizeWebhook, verifySignature } from "@kapso/whatsapp-cloud-api/server";

import { check, checkEqual, expectError, round } from "./checks.mjs";
import { Emulator, Receiver } from "./emulator.mjs";

const customer = "16505551234";
const receiver = new Receiver();
const emulator = new Emulator();
let client;

const webhooks = (requests) => requests.map((it) => normalizeWebhook(JSON.parse(it.body)));

/** Waits for a change of a template with these members; returns its value, as the client parses it. */
async function waitForChange(description, field, templateId, members) {
  const matches = (value) =>
    value.messageTemplateId === Number(templateId) &&
    Object.entries(members).every(([name, expected]) => value[name] === expected);
  const find = (requests) => webhooks(requests).flatMap((it) => it.raw[field] ?? []).find(matches);
  const found = await receiver.wait(find);
  check(description, found, members, webhooks(receiver.requests).map((it) => it.raw));
  return found ?? {};
}

/** Waits for the statuses of a message and checks their order. */
async function progress(id, expected) {
  const find = (requests) => webhooks(requests).flatMap((it) => it.statuses).filter((it) => it.id === id);
  await receiver.wait((requests) => find(requests).length >= expected.length);
  const found = find(receiver.requests);
  checkEqual("the statuses come in order", found.map((it) => it.status), expected);
  return found;
}

const create = (name) =>
  client.templates.create({
    businessAccountId: emulator.waba_id,
    name,
    language: "en_US",
    category: "UTILITY",
    parameterFormat: "NAMED",
    components: [
      {
        type: "BODY",
        text: "Order {{order}} comes on {{day}}, as we said.",
        example: {
          bodyTextNamedParams: [
            { paramName: "order", example: "A-17" },
            { paramName: "day", example: "Monday" },
          ],
        },
      },
      { type: "BUTTONS", buttons: [{ type: "QUICK_REPLY", text: "Fine" }] },
    ],
  });

const read = (templateId) => client.templates.get({ businessAccountId: emulator.waba_id, templateId });

async function send(name, values, to = customer) {
  const body = Object.entries(values).map(([parameterName, text]) => ({ type: "text", parameterName, text }));
  const buttons = [{ type: "button", subType: "quick_reply", index: 0, parameters: [{ type: "payload", payload: "OK" }] }];
  const template = buildTemplateSendPayload({ name, language: "en_US", body, buttons });
  const sent = await client.messages.sendTemplate({
    phoneNumberId: emulator.phone_number_id,
    to,
    template,
    bizOpaqueCallbackData: "round 17",
  });
  return sent.messages[0];
}

async function review(name) {
  const created = await create(name);
  checkEqual("a new template is pending", created.status, "PENDING");
  checkEqual("the clock applies the approval", (await emulator.advance("10m")).applied, 1);
  await waitForChange("the approval arrives", "messageTemplateStatusUpdate", created.id, { event: "APPROVED" });
  checkEqual("the template is approved", (await read(created.id)).status, "APPROVED");
}

async function sends(name) {
  const error = await expectError("a missing parameter is refused", () => send(name, { order: "B-42" }));
  check("the error is a GraphApiError", error instanceof GraphApiError, error);
  checkEqual("the error code and status", [error.code, error.httpStatus, error.category], [132000, 400, "template"]);
  check("the error names the missing parameter", error.details?.includes("{{day}}"), error.raw);

  const sent = await send(name, { order: "B-42", day: "Monday" });
  check("the id is one of the sandbox", sent.id.startsWith("wamid.sandbox."), sent);
  checkEqual("the message is accepted", sent.messageStatus, "accepted");
  await emulator.advance("5s");
  const statuses = await progress(sent.id, ["sent", "delivered", "read"]);
  const found = statuses.map((it) => [it.recipientId, it.bizOpaqueCallbackData]);
  checkEqual("the statuses name recipient and data", found, Array(3).fill([customer, "round 17"]));
  const kept = await emulator.message(sent.id);
  checkEqual("the message is kept", [kept.to, kept.status], [customer, "read"]);
  checkEqual(
    "the body is what the recipient reads",
    kept.texts.body,
    "Order B-42 comes on Monday, as we said.",
  );

  const failing = await send(name, { order: "B-42", day: "Monday" }, "1555010131026");
  await emulator.advance("5s");
  const failed = (await progress(failing.id, ["sent", "failed"])).at(-1);
  checkEqual("the failure has its code", failed?.errors?.[0]?.code, 131026);
  const refused = await expectError(
    "another magic recipient refuses the send",
    () => send(name, { order: "B-42", day: "Monday" }, "1555010130429"),
  );
  checkEqual("the client waits before it sends again", [refused.code, refused.category], [130429, "throttling"]);
}

async function rejection() {
  const created = await create("order_reject_promotional");
  checkEqual("the rejection comes at once", created.status, "REJECTED");
  const { id } = created;
  const members = { event: "REJECTED", reason: "PROMOTIONAL" };
  await waitForChange("the rejection arrives with its reason", "messageTemplateStatusUpdate", id, members);
  checkEqual("the template is rejected", (await read(id)).status, "REJECTED");
}

async function category() {
  const { id } = await create("order_to_marketing");
  const announced = { correctCategory: "MARKETING", newCategory: "UTILITY" };
  await waitForChange("the announcement arrives", "templateCategoryUpdate", id, announced);
  checkEqual("the category is not changed yet", (await read(id)).category, "UTILITY");
  await emulator.advance("24h");
  const changed = { previousCategory: "UTILITY", newCategory: "MARKETING" };
  await waitForChange("the change arrives", "templateCategoryUpdate", id, changed);
  checkEqual("the category is changed", (await read(id)).category, "MARKETING");
}

await round("@kapso/whatsapp-cloud-api", async () => {
  await receiver.start();
  await emulator.start(receiver);
  client = new WhatsAppClient({ accessToken: emulator.token, baseUrl: emulator.url, graphVersion: "v24.0" });
  const name = "order_shipped_pending_10m";
  await review(name);
  await sends(name);
  await rejection();
  await category();
  checkEqual("there was one handshake", receiver.handshakes.length, 1);
  const { app_secret: appSecret } = emulator;
  const isGenuine = ({ body, signature }) => verifySignature({ appSecret, rawBody: body, signatureHeader: signature });
  check("every signature is genuine", receiver.requests.every(isGenuine));
  const forged = { ...receiver.requests[0], body: Buffer.from("{}") };
  check("another body is not genuine", !isGenuine(forged));
  checkEqual("the emulator stops cleanly", await emulator.stop(), []);
});
