package org.quotahost.table;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.Stream;
import org.quotahost.table.Marks.Affected;
import org.quotahost.table.Tap.Windows;

/**
 * All that turns a scope's rate into a limit (factor, floor, stand-in, shadow): one immutable value, replaced as a whole.
 *
 * <p>A limit is null (unlimited) or a finite number above 0. Kafka's throttle time is (rate - bound) / bound x window, without
 * a cap (ClientQuotaManager, QuotaUtils), so a factor must not take a limit below the floor. A base rate that is itself below
 * the floor stays as the operator set it.
 *
 * @param all the rules by quota type for all clients, or for those that do not write to affected topics; an array of its own
 * @param slowed the same for clients that do, by the group of the topics; empty if no factor is for them only, or in shadow
 * @param affected the topics of these groups, also in shadow; null if there are none
 * @param shadow nothing is enforced: every limit is null (shadow=all)
 * @param now the beat of the table's clock from which the rule holds; limits that rise over empty windows depend on it
 */
record Rule(TypeRule[] all, Map<String, TypeRule[]> slowed, Affected affected, boolean shadow, Windows windows, int now) {
    /**
     * How the limits of one quota type are made.
     *
     * @param factor 0..1, multiplies the base rate, or the stand-in of a client without a quota
     * @param aim the factor to which this factor rises; the factor itself if it stays or falls
     * @param open clients without a quota are unlimited, also while the factor rises to 1, since they have no rate to rise to
     * @param floor the lowest limit that a factor may make, in the type's unit
     * @param multiplied factor.quota.types has the type: marked clients have slowed tags for it; for other types they have none
     * @param fellAt the last beat before the factor fell, or before a PAUSE that the fence holds; NEVER at a factor of 1
     * @param measured stand-ins have been measured since then; before that, clients without a quota have no limit
     */
    record TypeRule(double factor, double aim, boolean open, double floor, boolean multiplied, int fellAt, boolean measured) {
        /** The rule of a type that no factor multiplies. */
        static final TypeRule NONE = new TypeRule(1, 1, true, 0, false, Tags.NEVER, false);

        private boolean hasFallen() {
            return fellAt != Tags.NEVER;
        }
    }

    /** Returns how far Kafka looks back at most, in beats of the table's clock. */
    int backBeats() {
        return (int) (windows.kafkaMs() / QuotaTable.BEAT_MS) + 1;
    }

    /** Returns the topics whose writers have slowed tags of a type; null if there are none. */
    Affected slowing(int type) {
        return slowed.isEmpty() || !all[type].multiplied ? null : affected;
    }

    boolean factors(int type) {
        return all[type] != TypeRule.NONE;
    }

    /** Returns the same rule from another beat on. Each rule makes its limits anew. */
    Rule at(int beat) {
        return new Rule(all.clone(), slowed, affected, shadow, windows, beat);
    }

    /** Returns whether both make the same limits of a type. Clients have slowed tags only for types that a factor multiplies. */
    boolean isSame(Rule other, int type) {
        return shadow == other.shadow && (!factors(type) && !other.factors(type) || windows.equals(other.windows)
                && all[type].equals(other.all[type]) && slowed.keySet().equals(other.slowed.keySet())
                && slowed.keySet().stream().allMatch(group -> slowed.get(group)[type].equals(other.slowed.get(group)[type])));
    }

    /** Returns whether these are the tags of a group that has a factor of its own. */
    boolean slows(Tags tags) {
        return tags.group != null && slowed.containsKey(tags.group);
    }

    /** Returns how the limit of these tags is made. */
    TypeRule of(Tags tags, int type) {
        return slows(tags) ? slowed.get(tags.group)[type] : all[type];
    }

    Double limit(Tags tags, int type) {
        Scope scope = tags.scope;
        if (shadow || scope.isExempt()) return null;
        TypeRule typeRule = of(tags, type);
        double base = scope.base(type);
        boolean unlimited = Double.isNaN(base);
        boolean rises = tags.group != null ? slows(tags) : typeRule.multiplied && !unlimited;
        double share = rises ? windows.rise(tags.fill(type, this) * QuotaTable.BEAT_MS) : 1;
        // A client whose limit rises gets no more than others of its kind, whose limits may rise, too. While theirs fall, it
        // gets its share of the current factor: with its share of the aim, a step would mute it for too long.
        double factor = Math.min(typeRule.factor, typeRule.aim * share);
        if (factor >= 1 || typeRule == TypeRule.NONE) return unlimited ? null : base;
        double whole = unlimited ? scope.standIn(type) : base;
        // Without a quota a client has no limit until stand-ins are measured, unless it may have one by another factor already.
        boolean isNew = !typeRule.measured && !all[type].measured && (Double.isNaN(whole) || tags.group == null
                || slowed.values().stream().noneMatch(ofGroup -> ofGroup[type].measured));
        if (unlimited && (isNew || share >= 1 && typeRule.open)) return null;
        if (Double.isNaN(whole)) whole = scope.scopes.newcomers.base(type);
        if (Double.isNaN(whole)) return factor > 0 ? null : Double.valueOf(typeRule.floor);
        return Math.max(Math.min(whole, typeRule.floor), whole * factor);
    }

    /** Returns the last beat before the latest fall of a factor that is still below 1, or NEVER. Stand-ins are needed since then. */
    int fellAt() {
        return Stream.concat(Stream.of(all), slowed.values().stream().flatMap(Arrays::stream))
                .mapToInt(TypeRule::fellAt).max().orElseThrow();
    }

    /** Returns whether limits of these tags are back where they were before the factor fell. */
    boolean isOver(Tags tags, int type) {
        TypeRule typeRule = of(tags, type);
        return !typeRule.hasFallen() && typeRule.factor >= 1;
    }

    /** Returns whether the limit of these tags uses a stand-in, or will when a PAUSE that the fence holds is over. */
    boolean usesStandIn(Tags tags, int type) {
        return of(tags, type).hasFallen() && !shadow && !tags.scope.isExempt() && Double.isNaN(tags.scope.base(type));
    }
}
