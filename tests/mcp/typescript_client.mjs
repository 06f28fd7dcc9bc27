// A client on the TypeScript SDK v1: node typescript_client.mjs FOLDER_WITH_NODE_MODULES, the server in $SERVER: how to
// start it, or its address and the headers that it wants.
// Prints what it saw as one JSON object.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "from-here.js"));
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const client = new Client({ name: "typescript", version: "0" });
const server = JSON.parse(process.env.SERVER);
const overHttp = () => new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: server.headers } });
await client.connect(server.url ? overHttp() : new StdioClientTransport(server));
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

const progress = [];
const seen = { tools: (await client.listTools()).tools.map((tool) => tool.name), progress };
const onprogress = (told) => progress.push(told.progress);
seen.shown = await call("todays_ranking", { profile: "traffic" }, { onprogress });
seen.refused = await call("explain_rank", { paper_id: "2501.1", profile: "traffic" });
const stop = new AbortController();
const cancelled = call("search_papers", { query: "trains" }, { signal: stop.signal, onprogress: () => stop.abort("abort") });
seen.cancelled = await cancelled.then(() => "answered", (reason) => String(reason));
seen.again = (await call("todays_ranking", { profile: "speech" })).structuredContent.profile;
console.log(JSON.stringify(seen));
await client.close();
