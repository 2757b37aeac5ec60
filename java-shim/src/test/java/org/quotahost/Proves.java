package org.quotahost;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The ids (in tests/requirements) of the requirements that a test proves; docs/conformance.md lists them. */
@Retention(RetentionPolicy.SOURCE)
@Target(ElementType.METHOD)
public @interface Proves {
    /** For example {@code kip-13.delay}. */
    String[] value();
}
