package org.quotahost.table;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.Stream;
import org.quotahost.table.Marks.Affected;
import org.quotahost.table.Tap.Windows;

/**
 * All that makes a limit of a scope's rate (factor, floor, stand-in, shadow): one immutable value, replaced as a whole.
 *
 * <p>A limit is null (unlimited) or a finite number above 0. Kafka's throttle time is (rate - bound) / bound x window,
 * without a cap (ClientQuotaManager, QuotaUtils), so no factor may take a limit below the floor. A base rate that is
 * itself below the floor stays as the operator set it.
 *
 * @param all by quota type, how limits are made of all clients, or of those who don't write to affected topics
 * @param slowed the same of those who do, by the group of the topics; empty while no factor is for them only, or in shadow
 * @param affected the topics of these groups, in shadow, too; null while there are none
 * @param shadow nothing is enforced: every limit is null (shadow=all)
 * @param now the beat of the table's clock from which on the rule holds; with it the limits rise of who began with empty
 *     windows
 */
record Rule(TypeRule[] all, Map<String, TypeRule[]> slowed, Affected affected, boolean shadow, Windows windows, int now) {
    /**
     * How the limits of one quota type are made.
     *
     * @param factor 0..1, multiplies the base rate; of a client without a quota what it used when the factor fell
     * @param aim the factor that this one is on its way to
     * @param open clients without a quota are unlimited, though the factor may still be on its way to 1: they have no
     *     rate to rise to
     * @param floor the lowest limit that a factor may make, in the type's unit
     * @param multiplied by factor.quota.types: who is marked has slowed tags, whatever the factors of single types are
     * @param fellAt the last beat before the factor fell, or a PAUSE began that the fence holds; NEVER once it is 1 again
     * @param measured what clients without a quota use was looked for since then; until then they have no limit
     */
    record TypeRule(double factor, double aim, boolean open, double floor, boolean multiplied, int fellAt, boolean measured) {
        /** Of a type that no factor multiplies. */
        static final TypeRule NONE = new TypeRule(1, 1, true, 0, false, Tags.NEVER, false);

        private boolean hasFallen() {
            return fellAt != Tags.NEVER;
        }
    }

    /** How far Kafka looks back, at most, in beats of the table's clock. */
    int backBeats() {
        return (int) (windows.kafkaMs() / QuotaTable.BEAT_MS) + 1;
    }

    /** The topics whose writers have slowed tags; null for none. */
    Affected slowing() {
        return slowed.isEmpty() ? null : affected;
    }

    boolean factors(int type) {
        return all[type] != TypeRule.NONE;
    }

    /** From another beat on; a limit is made anew for each rule. */
    Rule at(int beat) {
        return new Rule(all, slowed, affected, shadow, windows, beat);
    }

    boolean isSame(Rule other, int type) {
        return shadow == other.shadow && all[type].equals(other.all[type]) && slowed.keySet().equals(other.slowed.keySet())
                && slowed.keySet().stream().allMatch(group -> slowed.get(group)[type].equals(other.slowed.get(group)[type]))
                && windows.equals(other.windows);
    }

    /** Whether these are tags of a group for which there is a factor of its own. */
    boolean slows(Tags tags) {
        return tags.group != null && slowed.containsKey(tags.group);
    }

    /** How the limit of these tags is made. */
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
        // Who rises gets no more than the others of its kind, which may be on their way up themselves. On the way down it gets
        // its share of what they have: by the factor that they are on their way to, a step would mute it for too long.
        double factor = Math.min(typeRule.factor, Math.max(typeRule.factor, typeRule.aim) * share);
        if (factor >= 1 || typeRule == TypeRule.NONE) return unlimited ? null : base;
        double whole = unlimited ? scope.standIn(type) : base;
        // Who had no limit until the fall has none until it is measured; who has a stand-in, or a fall of all before, is low already.
        boolean isNew = !typeRule.measured && !all[type].measured && Double.isNaN(whole);
        if (unlimited && (isNew || share >= 1 && typeRule.open)) return null;
        if (Double.isNaN(whole)) whole = scope.scopes.newcomers.base(type);
        if (Double.isNaN(whole)) return factor > 0 ? null : Double.valueOf(typeRule.floor);
        return Math.max(Math.min(whole, typeRule.floor), whole * factor);
    }

    /** The last beat before a factor fell that is below 1 still, NEVER for none: limits are made of what clients without a quota use. */
    int fellAt() {
        return Stream.concat(Stream.of(all), slowed.values().stream().flatMap(Arrays::stream))
                .mapToInt(TypeRule::fellAt).max().orElseThrow();
    }

    /** Whether limits of these tags are back where they were before the factor fell. */
    boolean isOver(Tags tags, int type) {
        TypeRule typeRule = of(tags, type);
        return !typeRule.hasFallen() && typeRule.factor >= 1;
    }

    /** Whether the limit of these tags is made of a stand-in, or will be once a PAUSE that the fence holds is over. */
    boolean usesStandIn(Tags tags, int type) {
        return of(tags, type).hasFallen() && !shadow && !tags.scope.isExempt() && Double.isNaN(tags.scope.base(type));
    }
}
