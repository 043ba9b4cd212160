/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands: one file each, cmd_<name>.c, which defines `const LhCommand lh_command_<name>` with
 * its options; src/cli/meson.build lists the names. Help and completion are generated from this
 * table.
 */
#pragma once

#include "framework_config/configuration.h"
#include "report/base/table.h"
#include "report/data/result_json.h"
#include "runtime/backend.h"
#include "scenario/scenario.h"

typedef struct _LhCommand LhCommand;
typedef struct _LhSaved LhSaved; /* saved.h */

/* A parsed command line. */
typedef struct {
    const LhCommand *command;
    const char *const *argv; /* complete, for the stamp */
    LhScenario *scenario;    /* from file and options; NULL for commands that take none */
    LhConfig *config;        /* of --from-config, which the scenario was made from; NULL: none */
    GPtrArray *arguments;    /* of char *: positional arguments */
    void *options;           /* the command's own; a value that is not given is zero */
    const LhSaved *saved;    /* saved result to compare the new one with; NULL: write the new one */
} LhCommandLine;

/* How a command ended. */
typedef enum {
    LH_ANSWER_YES,     /* done */
    LH_ANSWER_NO,      /* the printed answer is no: infeasible, out of tolerance */
    LH_ANSWER_PARTIAL, /* interrupted; the part done until then is printed or kept */
    LH_ANSWER_FAILED,  /* see the error */
} LhAnswer;

/* Exit status of an answer. @error is set for LH_ANSWER_FAILED only, and determines its status. */
int lh_answer_status(LhAnswer answer, const GError *error);

#define LH_COMMON_OPTIONS_MAX 10 /* of a command */

struct _LhCommand {
    const char *name;
    const char *arguments; /* arguments besides options, for help */
    const char *summary;   /* one line */
    const char *details;   /* printed after the options in help: what the command does, examples */
    bool scenario;         /* takes the scenario's options; the first argument is a scenario */
    bool sweeps;           /* takes scenarios that list values of fields */
    bool one_program;      /* takes one schedule or schedule file */
    unsigned ignores;      /* scenario's options with these flags are none of the command's ... */
    unsigned reads;        /* ... nor are those without any of these; 0: all may be */
    bool no_file;          /* no argument is a scenario: its options alone are taken */
    unsigned config_parts; /* LhConfigParts that a configuration gives its scenario */
    guint arguments_max;   /* arguments allowed, the scenario not counted */
    const char *names;     /* what these name, as `longhaul list` calls it; NULL: nothing */
    /* Options that help lists first, "--model", in this order; none: it lists all. */
    const char *common[LH_COMMON_OPTIONS_MAX + 1];
    const LhField *options; /* its own, of a struct of options_size; ended by a zero entry */
    size_t options_size;
    LhAnswer (*run)(const LhCommandLine *line, GError **error);
    /* Control plane by which several processes run the command together (job.h). NULL function or
     * result: the process runs alone. Such a command has an option --deadline, @deadline_s by
     * default. */
    const LhControl *(*control)(const LhCommandLine *line);
    uint32_t deadline_s;
};

/* NULL-terminated, in the order of meson.build. */
extern const LhCommand *const lh_commands[];

/* Returns the command, or NULL with @error (LH_ERROR_USAGE, with the nearest name) if @name is
 * unknown. */
const LhCommand *lh_command_find(const char *name, GError **error);

/* --- options shared by several commands ---------------------------------------------------------
 */

/* Destination and format of a result: a member of the command's options. */
typedef struct {
    int format; /* LhFormat */
    char *file; /* NULL, "-": standard output */
} LhOutputOptions;

/* Flags of the fields of a command's options. */
enum {
    LH_COMMAND_FIGURE = 1 << 16, /* an output figure, with a gnuplot script beside it */
    /* An output in the format of --format. Without --format, the file name's ending chooses it. */
    LH_COMMAND_FORMATTED = 1 << 17,
    LH_COMMAND_MAYBE_FIGURE = 1 << 18, /* an output that may be a figure, with a script beside it */
    LH_COMMAND_CONFIG = 1 << 19,       /* a configuration to make the scenario from */
    LH_COMMAND_HOW = 1 << 20,          /* changes how the result is computed, but not the result */
    LH_COMMAND_OWN = 1 << 21,          /* may differ between the processes of a job */
    LH_COMMAND_OF_ALL = 1 << 22,    /* an output that needs the results of all processes of a job */
    LH_COMMAND_VARIABLES = 1 << 23, /* values of a configuration's variables */
    LH_COMMAND_SHOWN = 1 << 24,     /* selects which part of the answer is shown */
};

/* Field of type char *. @text describes what is read from the configuration. */
#define LH_OPTION_FROM_CONFIG(Options, member, text)                                               \
    {                                                                                              \
        .name = "from-config", .category = LH_ABOUT_INPUT, .type = LH_FIELD_STRING,                \
        .offset = offsetof(Options, member), .flags = LH_COMMAND_CONFIG, .min = 1, .max = -1,      \
        .placeholder = "FILE", .names = "files",                                                   \
        .description = "Start from a training system's configuration: arguments or a script of "   \
                       "Megatron-LM, Megatron Bridge, ms-swift or TRL, YAML of Megatron-LM, "      \
                       "NeMo, accelerate, TRL, axolotl or "                                        \
                       "LLaMA-Factory, a .toml of torchtitan, a .json of DeepSpeed. " text         \
    }

/* Field of type GPtrArray of char *: VAR=VALUE. */
#define LH_OPTION_SET(Options, member)                                                             \
    {                                                                                              \
        .name = "set", .category = LH_ABOUT_INPUT, .type = LH_FIELD_STRINGS,                       \
        .offset = offsetof(Options, member), .min = 1, .max = -1, .flags = LH_COMMAND_VARIABLES,   \
        .placeholder = "VAR=VALUE",                                                                \
        .description =                                                                             \
            "Value of a variable in the script of --from-config, overriding the script."           \
    }

/* The options --format and --output for @member, an LhOutputOptions of @Options. */
#define LH_OPTION_FORMAT(Options, member)                                                          \
    {                                                                                              \
        .name = "format", .category = LH_ABOUT_OUTPUT, .type = LH_FIELD_CHOICE,                    \
        .offset = offsetof(Options, member.format), .flags = LH_COMMAND_OWN,                       \
        .choices = lh_format_names, .description = "Format of the output; default table."          \
    }
#define LH_OPTION_OUTPUT(Options, member)                                                          \
    {                                                                                              \
        .name = "output", .category = LH_ABOUT_OUTPUT, .type = LH_FIELD_STRING,                    \
        .offset = offsetof(Options, member.file),                                                  \
        .flags = LH_FIELD_WRITTEN | LH_COMMAND_FORMATTED,                                          \
        .description = "File for the result; default -, standard output. Without --format, its "   \
                       "ending chooses the format.",                                               \
        .placeholder = "FILE", .names = "files"                                                    \
    }
#define LH_OPTION_FIGURE(Options, member, text)                                                    \
    {                                                                                              \
        .name = "figure", .category = LH_ABOUT_FILES, .type = LH_FIELD_STRING,                     \
        .offset = offsetof(Options, member), .flags = LH_FIELD_WRITTEN | LH_COMMAND_FIGURE,        \
        .description = (text), .placeholder = "FILE", .names = "files"                             \
    }
/* An output file: the result, or one written in addition. */
#define LH_OPTION_WRITES(Options, about, key, member, text)                                        \
    {                                                                                              \
        .name = (key), .category = (about), .type = LH_FIELD_STRING,                               \
        .offset = offsetof(Options, member), .flags = LH_FIELD_WRITTEN, .description = (text),     \
        .placeholder = "FILE", .names = "files"                                                    \
    }
/* Field of type GPtrArray of char *: input files, at most @most. */
#define LH_OPTION_FROM(Options, member, most, text)                                                \
    {                                                                                              \
        .name = "from", .category = LH_ABOUT_INPUT, .type = LH_FIELD_STRINGS,                      \
        .offset = offsetof(Options, member), .min = 1, .max = (most), .description = (text),       \
        .placeholder = "FILE", .names = "files"                                                    \
    }
#define LH_OPTION_PROVENANCE(Options, member)                                                      \
    {                                                                                              \
        .name = "provenance", .category = LH_ABOUT_OUTPUT, .type = LH_FIELD_BOOL,                  \
        .offset = offsetof(Options, member), .flags = LH_COMMAND_SHOWN,                            \
        .description = "Also print where every constant comes from."                               \
    }
#define LH_OPTION_BACKEND(Options, member, text)                                                   \
    {                                                                                              \
        .name = "backend", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_CHOICE,                  \
        .offset = offsetof(Options, member), .choices = lh_backend_names, .description = (text)    \
    }
#define LH_OPTION_KERNELS(Options, member)                                                         \
    {                                                                                              \
        .name = "kernels", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_STRING,                  \
        .offset = offsetof(Options, member), .placeholder = "cpu|reference|builtin|cudnn",         \
        .description = "Kernels on CPUs: fast ones (cpu, default), or slow ones that compute in "  \
                       "fp64 (reference). On GPUs: longhaul's own (builtin, default), or "         \
                       "attention by cuDNN (cudnn)."                                               \
    }
#define LH_OPTION_BOOTSTRAP(Options, member, text)                                                 \
    {                                                                                              \
        .name = "bootstrap", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_CHOICE,                \
        .offset = offsetof(Options, member), .flags = LH_COMMAND_HOW, .choices = lh_control_names, \
        .description = (text)                                                                      \
    }
/* Field of type LhTime; 0 if not given. */
#define LH_OPTION_DEADLINE(Options, member, text)                                                  \
    {                                                                                              \
        .name = "deadline", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_UNIT,                   \
        .unit = LH_UNIT_TIME, .flags = LH_FIELD_SECONDS | LH_COMMAND_HOW,                          \
        .offset = offsetof(Options, member), .min = 1e-3, .max = LH_DEADLINE_S_MAX,                \
        .description = (text)                                                                      \
    }
#define LH_DEADLINE_S_MAX 1e6

/* Field of type uint64_t; 0 if not given: limited by cores and memory. @what is the unit of work
 * that runs in parallel. */
#define LH_OPTION_JOBS(Options, member, what)                                                      \
    {                                                                                              \
        .name = "jobs", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_UINT,                       \
        .offset = offsetof(Options, member), .min = 1, .max = LH_JOBS_MAX,                         \
        .flags = LH_COMMAND_HOW | LH_COMMAND_OWN,                                                  \
        .description = what " at once; default: one for each core that the process may use, if "   \
                            "memory suffices. The result does not depend on it."                   \
    }
#define LH_JOBS_MAX 1024

/* Field of type LhTime; 0 if not given: see lh_run_time_check. */
#define LH_OPTION_MAX_WORK(Options, member)                                                        \
    {                                                                                              \
        .name = "max-work", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_UNIT,                   \
        .unit = LH_UNIT_TIME, .flags = LH_COMMAND_HOW, .offset = offsetof(Options, member),        \
        .min = 1e-3, .max = LH_MAX_WORK_S,                                                         \
        .description =                                                                             \
            "Refuse work whose estimated duration on one core exceeds this limit; default 86400s." \
    }
#define LH_MAX_WORK_S 8e6

/* Whether @path is a file, neither NULL nor standard output. */
bool lh_command_is_file(const char *path);

/* Returns "here" for "/tmp/here.json", @fallback if @path is no file. Caller frees. */
char *lh_command_base_name(const char *path, const char *fallback);

/* Writes a command's result to the destination given on the command line. */
bool lh_command_write(const LhOutputOptions *to, const GString *text, GError **error);

/* Writes the result likewise; if a saved result is being checked, compares the two instead. */
bool lh_command_finish(const LhCommandLine *line, const LhOutputOptions *to, const GString *text,
                       GError **error);

/* For commands with one_program: rejects (LH_ERROR_USAGE) a command line that, with its scenario,
 * does not name exactly one schedule or schedule file. */
bool lh_command_check_program(const LhCommandLine *line, GError **error);

LhStamp lh_command_stamp(const LhCommandLine *line);

/* Prints to standard error what was read from the configuration and what was ignored
 * (lh_describe_config()). Prints nothing without a configuration. */
void lh_command_warn_config(const LhCommandLine *line);

/* Rejects --provenance (LH_ERROR_USAGE) in formats without room for it. */
bool lh_command_check_provenance(bool provenance, int format, GError **error);

/* Parses the value of @option, "10%" or "0.1", as a share: at most 1, and above 0 or (@zero) at
 * least 0. LH_ERROR_USAGE, with @share unchanged. */
bool lh_command_share(const char *option, const char *text, bool zero, double *share,
                      GError **error);

/* Returns the index of the kernel set named by --kernels; 0 for NULL. LH_ERROR_USAGE if @device
 * lacks it. */
bool lh_command_kernels(const char *name, const LhRunDevice *device, uint32_t *kernel_set,
                        GError **error);
