// A peer: the same create as a competent team would write it in a day with Bun, Hono, zod and bun:sqlite.

import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { Hono } from "hono";
import { z } from "zod";

const { values: options } = parseArgs({
  args: Bun.argv.slice(2),
  options: { listen: { type: "string" }, database: { type: "string" } },
});
const { PEER_KEY: key, PEER_TOKEN: token } = process.env;
if (!options.listen || !options.database || !key || !token) {
  console.error("usage: PEER_KEY=… PEER_TOKEN=… bun server.ts --listen HOST:PORT --database FILE");
  process.exit(2);
}

// The most important rules.

const PLACEHOLDER = /\{\{(.*?)\}\}/gs;
const text = (maxLength: number) => z.string().max(maxLength).regex(/\S/, "is empty");
const url = z.string().max(2000).regex(/^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/, "is not an http or https URL");

/** The number of distinct placeholders in a text, or an error message. */
function placeholders(text: string): number | string {
  const numbers = new Set<number>();
  for (const [, number] of text.matchAll(PLACEHOLDER)) {
    if (!/^[1-9][0-9]{0,2}$/.test(number!)) return "a placeholder must be a number such as {{1}}";
    numbers.add(Number(number));
  }
  if (text.replace(PLACEHOLDER, "").includes("{{")) return "a placeholder is not closed";
  return Math.max(0, ...numbers) === numbers.size ? numbers.size : "placeholders must be numbered from 1 without gaps";
}

const Header = z.discriminatedUnion("format", [
  z.object({ type: z.literal("HEADER"), format: z.literal("TEXT"), text: text(1024) }),
  z.object({ type: z.literal("HEADER"), format: z.literal("MEDIA"), example: z.object({ media_url: url }) }),
]);
const Body = z
  .object({
    type: z.literal("BODY"),
    text: text(4096),
    example: z.object({ body_text: z.array(z.array(z.string().min(1))).length(1) }).optional(),
  })
  .superRefine((body, context) => {
    const count = placeholders(body.text);
    if (typeof count === "string") {
      context.addIssue({ code: "custom", path: ["text"], message: count });
    } else if (count > 0 && body.example?.body_text[0]?.length !== count) {
      context.addIssue({ code: "custom", path: ["example"], message: "needs one sample per placeholder" });
    }
  });
const Footer = z.object({ type: z.literal("FOOTER"), text: text(1024) });
const Button = z.discriminatedUnion("type", [
  z.object({ type: z.literal("QUICK_REPLY"), text: text(128) }),
  z.object({ type: z.literal("URL"), text: text(128), url }),
  z.object({
    type: z.literal("PHONE_NUMBER"),
    text: text(128),
    phone_number: z.string().regex(/^\+?[1-9][0-9]{6,14}$/, "must have 7 to 15 digits including the country code"),
  }),
  z.object({ type: z.literal("COPY_CODE"), example: text(128) }),
]);
const Buttons = z.object({ type: z.literal("BUTTONS"), buttons: z.array(Button).min(1).max(20) });

const Template = z.object({
  name: z.string().min(1).max(512).regex(/^\S(.*\S)?$/s, "has leading or trailing white space"),
  language: z.string().regex(/^[a-z]{2}_[A-Z]{2}$/, "is not a language_REGION such as en_US"),
  category: z.enum(["MARKETING", "UTILITY", "AUTHENTICATION"]),
  allow_category_change: z.boolean(),
  components: z
    .array(z.discriminatedUnion("type", [Header, Body, Footer, Buttons]))
    .superRefine((components, context) => {
      for (const [type, min] of [["BODY", 1], ["HEADER", 0], ["FOOTER", 0], ["BUTTONS", 0]] as const) {
        const count = components.filter((component) => component.type === type).length;
        if (count < min || count > 1) context.addIssue({ code: "custom", message: `${count} of type ${type}` });
      }
    }),
});

// The database: one transaction per create, with the same settings and tables as the other peer.

const db = new Database(options.database, { create: true, strict: true });
db.run("PRAGMA journal_mode = WAL");
db.run("PRAGMA synchronous = FULL");
db.run("PRAGMA foreign_keys = ON");
db.run("PRAGMA busy_timeout = 5000");
db.run(`CREATE TABLE IF NOT EXISTS credentials (
  kind TEXT NOT NULL, hash TEXT NOT NULL, account INTEGER NOT NULL, PRIMARY KEY (kind, hash))`);
db.run(`CREATE TABLE IF NOT EXISTS templates (
  id INTEGER PRIMARY KEY AUTOINCREMENT, account INTEGER NOT NULL, phone_number_id TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE, language TEXT NOT NULL, category TEXT NOT NULL,
  allow_category_change INTEGER NOT NULL, status TEXT NOT NULL, components TEXT NOT NULL,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()))`);
db.run(`CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, template INTEGER NOT NULL REFERENCES templates (id),
  type TEXT NOT NULL, at INTEGER NOT NULL DEFAULT (unixepoch()))`);

const hash = (secret: string) => createHash("sha256").update(secret).digest("hex");
const addCredential = db.query("INSERT OR IGNORE INTO credentials (kind, hash, account) VALUES (?, ?, 1)");
addCredential.run("key", hash(key));
addCredential.run("token", hash(token));
const accounts = new Map<string, number>();
type Credential = { kind: string; hash: string; account: number };
for (const row of db.query<Credential, []>("SELECT kind, hash, account FROM credentials").all()) {
  accounts.set(`${row.kind} ${row.hash}`, row.account);
}

const insertTemplate = db.query<{ id: number }, (string | number | boolean)[]>(
  `INSERT INTO templates (account, phone_number_id, name, language, category, allow_category_change, status, components)
   VALUES (?, ?, ?, ?, ?, ?, 'APPROVED', ?) ON CONFLICT (name) DO NOTHING RETURNING id`,
);
const insertEvent = db.query("INSERT INTO events (template, type) VALUES (?, 'template.created')");
const create = db.transaction((account: number, phone: string, template: z.infer<typeof Template>) => {
  const { name, language, category, allow_category_change, components } = template;
  const row = insertTemplate.get(
    account, phone, name, language, category, allow_category_change, JSON.stringify(components),
  );
  if (row) insertEvent.run(row.id);
  return row?.id;
});

// The route.

const app = new Hono();
app.get("/readyz", (c) => c.text("ready"));
app.post("/api/v1.0/:phone_number_id/:key/message_templates", async (c) => {
  const bearer = c.req.header("Authorization")?.match(/^Bearer (.+)$/)?.[1];
  const account = bearer && accounts.get(`token ${hash(bearer)}`);
  if (!account || accounts.get(`key ${hash(c.req.param("key"))}`) !== account) {
    return c.json({ title: "unknown key or token", status: 401 }, 401, { "WWW-Authenticate": "Bearer" });
  }
  let body: unknown;
  try {
    body = await c.req.json();
  } catch {
    return c.json({ title: "not JSON", status: 400 }, 400);
  }
  const template = Template.safeParse(body);
  if (!template.success) {
    return c.json({ title: "invalid document", status: 422, violations: template.error.issues }, 422);
  }
  const id = create.immediate(account, c.req.param("phone_number_id"), template.data);
  if (id === undefined) return c.json({ title: "name is already in use", status: 409 }, 409);
  return c.json({ id: String(id), status: "APPROVED", category: template.data.category }, 201, {
    Location: `message_templates/${id}`,
  });
});

const [hostname, port] = options.listen.split(":");
Bun.serve({ hostname, port: Number(port), fetch: app.fetch });
