// Shopify's own client, as it comes, with its base URL at Tidegate: so many calls at once.
// Arguments: the base URL and how many. It says what came of each.
import { createAdminApiClient } from "@shopify/admin-api-client";

const [base, calls] = [process.argv[2], Number(process.argv[3])];
const shop = "acme.myshopify.com";
const client = createAdminApiClient({
  storeDomain: shop,
  apiVersion: "2026-04",
  accessToken: "a token that is not used",
  // It knows no base URL but that of a shop. This is the way it offers to send its calls elsewhere.
  customFetchApi: (url, init) => fetch(String(url).replace(`https://${shop}`, base), init),
  logger: () => {},
});

const QUERY = `query Products($first: Int!) { products(first: $first) { nodes { id title } } }`;

const asked = Array.from({ length: calls }, (_, nth) =>
  client.request(QUERY, {
    variables: { first: 50 + (nth % 5) * 20 },
  }),
);
const answers = await Promise.all(asked);
const told = answers.map(({ data, errors, extensions }) => ({
  products: data?.products?.nodes?.length ?? null,
  error: errors ? JSON.stringify(errors) : null,
  cost: extensions?.cost?.requestedQueryCost ?? null,
}));
console.log(JSON.stringify(told));
