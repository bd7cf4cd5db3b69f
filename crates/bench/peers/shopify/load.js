// Keeps as many points of calls in flight for a shop as wait for it, or one call at a time. The
// queries are those that Tidegate is measured with.

/** Makes calls forever; fails with the first that fails. */
export function keepUp(client, { cards, number, processes, one_at_a_time: oneAtATime }) {
  const { shop } = client;
  // Each process has its own share of the shop's queries: with four processes, every fourth.
  let next = number;
  let [calls, points] = [0, 0];
  return new Promise((_, reject) => {
    const fill = () => {
      while (oneAtATime ? calls < 1 : points < shop.waiting) {
        const card = cards[(shop.first + next) % cards.length];
        next += processes;
        calls += 1;
        points += card.expected;
        client.call(card.text).then(() => {
          calls -= 1;
          points -= card.expected;
          fill();
        }, reject);
      }
    };
    fill();
  });
}
