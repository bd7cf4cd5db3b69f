// discord.js's own REST client, as it comes, with its base URL at Tidegate: 32 calls at once.
// Arguments: the base URL, a guild and a channel of it. It says what came of each, and every status it saw.
import { REST } from "@discordjs/rest";

const [base, guild, channel] = process.argv.slice(2);
const statuses = [];
const rest = new REST({ version: "10", api: base }).setToken("a token that is not used");
rest.on("response", (_, response) => statuses.push(response.status));

const each = (count, call) => Array.from({ length: count }, (_, nth) => call(nth));
const asked = [
  ...each(12, (nth) => rest.post(`/channels/${channel}/messages`, { body: { content: `message ${nth}` } })),
  ...each(8, (nth) => rest.post(`/guilds/${guild}/roles`, { body: { name: `role ${nth}` }, reason: "a test" })),
  ...each(8, (nth) => rest.post(`/guilds/${guild}/channels`, { body: { name: `channel-${nth}` } })),
  ...each(4, (nth) => rest.get(`/guilds/${nth + 1}00000000000000000`)),
];
const answers = await Promise.allSettled(asked);
const errors = answers.filter(({ status }) => status === "rejected").map(({ reason }) => String(reason));
const made = answers.filter(({ value }) => value?.id).length;
console.log(JSON.stringify({ made, errors, statuses }));
