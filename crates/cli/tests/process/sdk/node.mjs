// shopify-api-node, as it comes, with its calls sent to Tidegate: so many at once, each with a query and a list that is
// read page by page to its end. Arguments: the base URL and how many. It says what came of each.
import Shopify from "shopify-api-node";

const [base, calls] = [new URL(process.argv[2]), Number(process.argv[3])];
const shop = new Shopify({
  shopName: "acme",
  accessToken: "a token that is not used",
  apiVersion: "2026-04",
  // It knows no path before that of the API. This is the way it offers to change its requests.
  hooks: {
    beforeRequest: [
      ({ url }) => {
        url.pathname = base.pathname + url.pathname;
      },
    ],
  },
});
shop.baseUrl = { protocol: base.protocol, hostname: base.hostname, port: base.port };

const QUERY = `query Products($first: Int!) { products(first: $first) { nodes { id title } } }`;

async function read(nth) {
  const found = await shop.graphql(QUERY, { first: 50 + (nth % 5) * 20 });
  const ids = [];
  let query = { limit: 50 };
  while (query) {
    const page = await shop.order.list(query);
    ids.push(...page.map((order) => order.id));
    query = page.nextPageParameters;
  }
  return { products: found.products.nodes.length, ids };
}

const asked = Array.from({ length: calls }, (_, nth) =>
  read(nth).catch((error) => ({ error: String(error) })),
);
console.log(JSON.stringify(await Promise.all(asked)));
