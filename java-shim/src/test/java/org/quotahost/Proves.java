package org.quotahost;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The requirements of the documents that a test proves, by their ids in tests/requirements; docs/conformance.md lists them. */
@Retention(RetentionPolicy.SOURCE)
@Target(ElementType.METHOD)
public @interface Proves {
    /** Such as {@code kip-13.delay}. */
    String[] value();
}
