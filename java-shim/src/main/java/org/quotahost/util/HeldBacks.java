package org.quotahost.util;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The counters of all rules that are or were in shadow, by their names in the property shadow.
 *
 * <p>Rules beyond MOST share one counter: single topics may be put in shadow one after the other.
 */
public final class HeldBacks {
    static final int MOST = 100;
    static final String OTHERS = "<other rules>";

    private final Map<String, HeldBack> byRule = new ConcurrentHashMap<>();

    /** The counter of a rule. */
    public HeldBack of(String rule) {
        HeldBack known = byRule.get(rule);
        if (known != null) return known;
        return byRule.computeIfAbsent(byRule.size() < MOST ? rule : OTHERS, any -> new HeldBack());
    }

    /** A new reading of all rules begins whose names begin so. */
    public void begin(String prefix) {
        byRule.forEach((rule, counts) -> {
            if (rule.startsWith(prefix)) counts.begin();
        });
    }

    /** That reading is over. */
    public void end(String prefix) {
        byRule.forEach((rule, counts) -> {
            if (rule.startsWith(prefix)) counts.end();
        });
    }

    /** All counters by rule. */
    public Map<String, HeldBack> all() {
        return new TreeMap<>(byRule);
    }
}
