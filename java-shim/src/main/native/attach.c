/*
 * Starts Python inside a JVM that is already running (org.quotahost.python.Interpreter).
 *
 * JPype starts a JVM by opening a library and calling its JNI_CreateJavaVM. If JPype opens this library, it gets
 * the running JVM, which has loaded this library. The other half of this file starts libpython. This library opens
 * libpython, and not Java, since extension modules expect global symbols of libpython.
 *
 * The functions that Java calls return NULL, or a sentence that says what failed.
 */
#include <dlfcn.h>
#include <jni.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static JavaVM *vm;
static void *python;

static struct {
  void (*initialize)(int);
  int (*initialized)(void);
  void *(*save_thread)(void);
  int (*gil_ensure)(void);
  void (*gil_release)(int);
  int (*run)(const char *);
  void *(*add_module)(const char *);
  void *(*get_attr)(void *, const char *);
  const char *(*as_utf8)(void *);
  void (*clear)(void);
  void (*program_name)(const wchar_t *);          /* NULL from Python 3.15 on: sys.path must suffice */
  wchar_t *(*decode)(const char *, size_t *);
  int *isolated;                                  /* the flag -I; NULL from Python 3.15 on */
  int *utf8;                                      /* -X utf8; NULL from 3.15 on, UTF-8 in any locale */
} py;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *loaded_by, void *reserved) {
  (void)reserved;
  vm = loaded_by;
  return JNI_VERSION_1_8;
}

/* JPype calls this, and gets the running JVM with the calling thread attached. */
JNIEXPORT jint JNICALL JNI_CreateJavaVM(JavaVM **out, void **env, void *args) {
  (void)args;
  if (!vm) return JNI_ERR;
  *out = vm;
  return (*vm)->AttachCurrentThreadAsDaemon(vm, env, NULL);
}

JNIEXPORT jint JNICALL JNI_GetCreatedJavaVMs(JavaVM **out, jsize size, jsize *found) {
  *found = vm ? 1 : 0;
  if (vm && size > 0) *out = vm;
  return JNI_OK;
}

static jstring sentence(JNIEnv *env, const char *what, const char *detail) {
  char text[1024];
  snprintf(text, sizeof text, "%s: %s", what, detail ? detail : "unknown");
  return (*env)->NewStringUTF(env, text);
}

static int resolve(void) {
#define NEED(field, name) if (!(*(void **)&py.field = dlsym(python, name))) return 0
  NEED(initialize, "Py_InitializeEx");
  NEED(initialized, "Py_IsInitialized");
  NEED(save_thread, "PyEval_SaveThread");
  NEED(gil_ensure, "PyGILState_Ensure");
  NEED(gil_release, "PyGILState_Release");
  NEED(run, "PyRun_SimpleString");
  NEED(add_module, "PyImport_AddModule");
  NEED(get_attr, "PyObject_GetAttrString");
  NEED(as_utf8, "PyUnicode_AsUTF8");
  NEED(clear, "PyErr_Clear");
  NEED(decode, "Py_DecodeLocale");
#undef NEED
  *(void **)&py.program_name = dlsym(python, "Py_SetProgramName");
  py.isolated = (int *)dlsym(python, "Py_IsolatedFlag");
  py.utf8 = (int *)dlsym(python, "Py_UTF8Mode");
  return 1;
}

/*
 * Starts Python once, as the interpreter `executable` would start it with -I, and releases the GIL. With -I Python ignores
 * PYTHON* variables of the broker: PYTHONFAULTHANDLER would replace HotSpot's handler of SIGSEGV, and end the broker.
 */
JNIEXPORT jstring JNICALL Java_org_quotahost_python_Interpreter_initialize(
    JNIEnv *env, jclass type, jstring library, jstring executable) {
  (void)type;
  const char *path = (*env)->GetStringUTFChars(env, library, NULL);
  python = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  (*env)->ReleaseStringUTFChars(env, library, path);
  if (!python) return sentence(env, "libpython does not load", dlerror());
  if (!resolve()) return sentence(env, "libpython lacks a function", dlerror());
  if (py.initialized()) return NULL;
  /* In the locale C (a container without a locale), an interpreter uses UTF-8 for files by itself, but libpython does not. */
  if (py.utf8 && !strcmp(setlocale(LC_CTYPE, NULL), "C")) *py.utf8 = 1;
  if (py.program_name) {
    const char *name = (*env)->GetStringUTFChars(env, executable, NULL);
    py.program_name(py.decode(name, NULL));       /* Python keeps the pointer, so it is never freed */
    (*env)->ReleaseStringUTFChars(env, executable, name);
  }
  if (py.isolated) *py.isolated = 1;
  py.initialize(0);                               /* 0: Python installs no signal handlers */
  py.save_thread();
  return NULL;
}

/*
 * Runs code on this thread. The code must catch every exception, also SystemExit, since PyRun_SimpleString would end
 * the process on it, and must leave its error in __main__.quotahost_error ("" for none).
 */
JNIEXPORT jstring JNICALL Java_org_quotahost_python_Interpreter_run(JNIEnv *env, jclass type, jstring code) {
  (void)type;
  jstring failure = NULL;
  int gil = py.gil_ensure();
  const char *text = (*env)->GetStringUTFChars(env, code, NULL);
  int status = py.run(text);
  (*env)->ReleaseStringUTFChars(env, code, text);
  void *error = status == 0 ? py.get_attr(py.add_module("__main__"), "quotahost_error") : NULL;
  const char *message = error ? py.as_utf8(error) : "Python could not run the code; see the broker's stderr";
  if (!message || *message) failure = (*env)->NewStringUTF(env, message ? message : "an error that is no text");
  if (!error) py.clear();
  py.gil_release(gil);
  return failure;
}
