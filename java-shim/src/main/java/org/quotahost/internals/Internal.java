package org.quotahost.internals;

import java.util.List;

/**
 * One use of something that is no public API: what was found for it, or that it is missing.
 *
 * <p>Request threads only read it. Internals lists all of them, tries each once, and logs what is missing.
 *
 * @param <T> what the users of this use need for it
 */
public final class Internal<T> {
    private final String name;
    private final String weaker;
    private final Trial<T> trial;
    private boolean tried;
    private boolean logged;
    private volatile T found;
    /** Why it is missing, or null. */
    private volatile String why;

    /** Looks for what is needed; whatever it throws means that it is missing. */
    interface Trial<T> {
        T find() throws Throwable;
    }

    /** @param weaker what quotahost does otherwise, or not at all, where it is missing; half a sentence */
    Internal(String name, String weaker, Trial<T> trial) {
        this.name = name;
        this.weaker = weaker;
        this.trial = trial;
    }

    /** What was found; null before the trial, and where it is missing. */
    public T get() {
        return found;
    }

    /** In the names of gauges, and for quotahost.internals.without. */
    public String name() {
        return name;
    }

    public boolean missing() {
        return why != null;
    }

    /** It is there, but has just not done what it is for. Any thread may say so; the log gets the first reason. */
    public void failed(String reason) {
        if (why == null) why = reason;
    }

    /** The first call looks for it, unless an operator has taken it away. */
    synchronized void tryOnce(List<String> without) {
        if (tried) return;
        tried = true;
        try {
            if (without.contains(name)) throw new IllegalStateException("-D" + Internals.WITHOUT);
            found = trial.find();
        } catch (Throwable e) { // NoClassDefFoundError above all
            failed(e.toString());
        }
    }

    /** Takes this for what was found; null for nothing. */
    synchronized void find(T instead) {
        tried = true;
        found = instead;
        why = null;
    }

    /** The line that says what is missing, or null; each is asked for once. */
    synchronized String news() {
        if (why == null || logged) return null;
        logged = true;
        return sentence();
    }

    /** What is missing, in words; only where it is. */
    String sentence() {
        return name + " is missing, or not as quotahost knows it (" + why + "), so " + weaker;
    }
}
