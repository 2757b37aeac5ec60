package org.quotahost.table;

import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;

/**
 * Finds the busiest of many clients without reading Kafka's measurements of all of them each time.
 *
 * <p>A reading costs some microseconds, and the task publish-usage looks twice a second for a list of 100. Up to
 * AT_ONCE clients are all read. Of more, each look reads those that were the busiest before, and of the others
 * another part; a client that gets busy is found at the latest when it is its part's turn, 5 s later with 10,000.
 */
final class BusiestClients {
    static final int AT_ONCE = 1_000;
    /** So many times as many as are asked for are read each time, since ranks change between two looks. */
    private static final int MARGIN = 2;

    private int turn;
    private Set<Usage.Key> before = Set.of();

    /**
     * Reads some and answers the busiest of them.
     *
     * @param reading null for a client that is not measured
     */
    synchronized List<Usage.Measured> of(List<Usage> used, int most, Function<Usage, Usage.Measured> reading) {
        int parts = (used.size() + AT_ONCE - 1) / AT_ONCE;
        turn = parts == 0 ? 0 : (turn + 1) % parts;
        List<Usage.Measured> busiest = used.stream()
                .filter(usage -> parts < 2 || before.contains(usage.key()) || part(usage, parts) == turn)
                .map(reading).filter(Objects::nonNull)
                .sorted(Comparator.comparingDouble(Usage.Measured::rate).reversed()).limit((long) MARGIN * most).toList();
        before = new HashSet<>();
        if (parts > 1) busiest.forEach(measured -> before.add(measured.usage().key()));
        return busiest.subList(0, Math.min(most, busiest.size()));
    }

    private static int part(Usage usage, int parts) {
        return Math.floorMod(usage.key().hashCode(), parts);
    }
}
