/*
 * Runs the attach library of a musl system with stand-ins for a JVM and its environment, since Debian has no JVM for
 * musl. It exits with 0 if the library returns the JVM that has loaded it, and reports that libpython is missing.
 */
#include <dlfcn.h>
#include <jni.h>
#include <stdio.h>
#include <string.h>

static char told[1024];

static jint attach(JavaVM *vm, void **env, void *args) {
  (void)vm, (void)args;
  *env = told;
  return JNI_OK;
}
static const char *characters(JNIEnv *env, jstring text, jboolean *copied) {
  (void)env, (void)copied;
  return (const char *)text;
}
static void release(JNIEnv *env, jstring text, const char *characters) { (void)env, (void)text, (void)characters; }
static jstring keep(JNIEnv *env, const char *text) {
  (void)env;
  snprintf(told, sizeof told, "%s", text);
  return (jstring)told;
}

int main(int count, char **arguments) {
  struct JNIInvokeInterface_ calls = {.AttachCurrentThreadAsDaemon = attach};
  struct JNINativeInterface_ functions = {
      .GetStringUTFChars = characters, .ReleaseStringUTFChars = release, .NewStringUTF = keep};
  JavaVM vm = &calls, *got = NULL;
  JNIEnv env = &functions;
  void *attached = NULL, *library = dlopen(count > 1 ? arguments[1] : "", RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  jint (*loaded)(JavaVM *, void *) = (jint (*)(JavaVM *, void *))dlsym(library, "JNI_OnLoad");
  jint (*create)(JavaVM **, void **, void *) = (jint (*)(JavaVM **, void **, void *))dlsym(library, "JNI_CreateJavaVM");
  jstring (*start)(JNIEnv *, jclass, jstring, jstring) = (jstring (*)(JNIEnv *, jclass, jstring, jstring))dlsym(
      library, "Java_org_quotahost_python_Interpreter_initialize");
  if (!loaded || !create || !start) return fprintf(stderr, "a function is missing\n"), 2;
  if (create(&got, &attached, NULL) != JNI_ERR) return fprintf(stderr, "a JVM before one was there\n"), 3;
  if (loaded(&vm, NULL) != JNI_VERSION_1_8 || create(&got, &attached, NULL) != JNI_OK || got != &vm || attached != told)
    return fprintf(stderr, "not the JVM that has loaded it\n"), 4;
  start(&env, NULL, (jstring)"/none/libpython3.so", (jstring)"python3");
  puts(told);
  return strstr(told, "libpython does not load") ? 0 : 5;
}
