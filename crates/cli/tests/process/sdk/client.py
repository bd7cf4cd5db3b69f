"""ShopifyAPI, as it comes, with its site at Tidegate: so many threads, each with a query and a list that is read page by
page to its end, by the links that it is given. Arguments: the base URL and how many. It says what came of each."""

import json
import sys
import threading

import shopify

BASE, CALLS = sys.argv[1], int(sys.argv[2])
QUERY = "query Products($first: Int!) { products(first: $first) { nodes { id title } } }"

told = [None] * CALLS


def read(nth):
    shopify.ShopifyResource.site = f"{BASE}/admin/api/2026-04"
    shopify.ShopifyResource.headers["X-Shopify-Access-Token"] = "a token that is not used"
    found = json.loads(shopify.GraphQL().execute(QUERY, {"first": 50 + nth % 5 * 20}))
    page = shopify.Order.find(limit=50)
    ids, links = [order.id for order in page], []
    while page.has_next_page():
        links.append(page.next_page_url)
        page = page.next_page()
        ids += [order.id for order in page]
    return {"products": len(found["data"]["products"]["nodes"]), "ids": ids, "links": links}


def run(nth):
    try:
        told[nth] = read(nth)
    except Exception as error:  # noqa: BLE001
        told[nth] = {"error": repr(error)}


threads = [threading.Thread(target=run, args=(nth,)) for nth in range(CALLS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(told))
