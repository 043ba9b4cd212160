/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that are loaded when they are needed, so that one program starts where there is none
 * and says so: tables of their functions, and what is said when one is not there or too old.
 */
#pragma once

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    size_t offset; /* of the pointer to it, in the struct of the library's functions */
} LhLibraryFunction;

/* The row of ncclSend in LhNccl, whose member is Send. */
#define LH_LIBRARY_FUNCTION(prefix, type, member)                                                  \
    {                                                                                              \
#prefix #member, offsetof(type, member)                                                    \
    }

typedef struct {
    int major, minor, patch;
} LhLibraryVersion;

typedef struct {
    const char *name;     /* "NCCL" */
    const char *file;     /* that is loaded ... */
    const char *variable; /* ... if this variable of the environment names no other one */
    const LhLibraryFunction *functions; /* ended by one without a name */
    LhLibraryVersion least; /* newer ones will do, too, as long as they are of the same ... */
    int major;              /* ... major version: that of the headers, whose types and enumerators
                               functions are called with */
    /* What the library in @functions says of itself; false with what it says instead. */
    bool (*version)(void *functions, LhLibraryVersion *version, const char **why);
} LhLibrary;

/* Of a process. */
typedef struct {
    pthread_mutex_t lock;
    bool is_loaded;
} LhLibraryState;
#define LH_LIBRARY_STATE                                                                           \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/*
 * Loads the library, once in a process, and sets the pointers of @functions, its struct.
 * LH_ERROR_RUNTIME with its name if it is not there, lacks a function, or is of another version;
 * @functions means nothing then. May be called from any thread.
 */
bool lh_library_load(const LhLibrary *library, LhLibraryState *state, void *functions,
                     GError **error);

/* "2.28.9"; caller frees. */
char *lh_library_version_text(LhLibraryVersion version);

/* The file that a function has been loaded from; caller frees. */
char *lh_library_path(const void *function);
