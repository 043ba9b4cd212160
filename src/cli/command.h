/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands: one file each, cmd_<name>.c defining `const LhCommand lh_command_<name>` and the
 * options of its own, and one word in src/cli/meson.build. Help and completion are made from this
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

/* What a command line said. */
typedef struct {
    const LhCommand *command;
    const char *const *argv; /* the whole of it, for the stamp */
    LhScenario *scenario;    /* file and options; NULL for commands that take none */
    LhConfig *config;        /* that the scenario is made of; NULL: none */
    GPtrArray *arguments;    /* of char *: what is left beside options */
    void *options;           /* the command's own, all zero where not given */
    const LhSaved *saved;    /* the result is not written: it must be this one; NULL: it is new */
} LhCommandLine;

/* How a command has ended. */
typedef enum {
    LH_ANSWER_YES,     /* it has done what was asked */
    LH_ANSWER_NO,      /* the answer, which is printed, is no: infeasible, out of tolerance */
    LH_ANSWER_PARTIAL, /* it was interrupted; what it had until then is printed or kept */
    LH_ANSWER_FAILED,  /* an error says why */
} LhAnswer;

/* The exit status: of LH_ANSWER_FAILED, and of this alone, there is an @error, which decides it. */
int lh_answer_status(LhAnswer answer, const GError *error);

#define LH_COMMON_OPTIONS_MAX 10 /* of a command */

struct _LhCommand {
    const char *name;
    const char *arguments; /* what may stand beside options, for help */
    const char *summary;   /* one line */
    const char *details;   /* printed after the options in help: what it does, examples */
    bool scenario;         /* takes the scenario's options; the first argument is a scenario */
    bool sweeps;           /* takes scenarios that list values of fields */
    bool one_program;      /* takes one schedule or schedule file */
    unsigned ignores;      /* scenario's options with these flags are none of the command's ... */
    unsigned reads;        /* ... nor are those without any of these; 0: all may be */
    bool no_file;          /* no argument is a scenario: its options alone are taken */
    unsigned config_parts; /* LhConfigParts that a configuration gives its scenario */
    guint arguments_max;   /* arguments allowed, the scenario not counted */
    const char *names;     /* what these name, as `longhaul list` calls it; NULL: nothing */
    /* Of the options those that help begins with, "--model", in this order; none: it shows all. */
    const char *common[LH_COMMON_OPTIONS_MAX + 1];
    const LhField *options; /* its own, of a struct of options_size; ended by a zero entry */
    size_t options_size;
    LhAnswer (*run)(const LhCommandLine *line, GError **error);
    /* The control plane by which several processes run the line together (job.h); NULL, for the
     * function or what it returns: each is alone. Such commands have an option --deadline, which
     * is @deadline_s if it is not given. */
    const LhControl *(*control)(const LhCommandLine *line);
    uint32_t deadline_s;
};

/* NULL-terminated, in the order of meson.build. */
extern const LhCommand *const lh_commands[];

/* NULL with @error (LH_ERROR_USAGE, with the nearest name) if there is no such command. */
const LhCommand *lh_command_find(const char *name, GError **error);

/* --- options that several commands have ---------------------------------------------------------
 */

/* Where a result goes, and how it is written: a member of the command's options. */
typedef struct {
    int format; /* LhFormat */
    char *file; /* NULL, "-": standard output */
} LhOutputOptions;

/* Flags of fields of a command's options. */
enum {
    LH_COMMAND_FIGURE = 1 << 16, /* a picture that it writes, with a script beside it */
    /* In the format of --format: if this was not given, an ending that names a format chooses it.
     */
    LH_COMMAND_FORMATTED = 1 << 17,
    LH_COMMAND_MAYBE_FIGURE = 1 << 18, /* an output with a script beside it, if it is a figure */
    LH_COMMAND_CONFIG = 1 << 19,       /* a configuration, which the scenario is made of */
    LH_COMMAND_HOW = 1 << 20,          /* how the result is worked out, which is the same anyhow */
    LH_COMMAND_OWN = 1 << 21,          /* of each process of a job: others may have another */
    LH_COMMAND_OF_ALL = 1 << 22,    /* an output that takes what all processes of a job have done */
    LH_COMMAND_VARIABLES = 1 << 23, /* what variables of a configuration are */
    LH_COMMAND_SHOWN = 1 << 24,     /* what of the answer is shown */
};

/* A char *. @text says what is taken from it. */
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

/* A GPtrArray of char *: NAME=VALUE. */
#define LH_OPTION_SET(Options, member)                                                             \
    {                                                                                              \
        .name = "set", .category = LH_ABOUT_INPUT, .type = LH_FIELD_STRINGS,                       \
        .offset = offsetof(Options, member), .min = 1, .max = -1, .flags = LH_COMMAND_VARIABLES,   \
        .placeholder = "VAR=VALUE",                                                                \
        .description =                                                                             \
            "What a variable of the script of --from-config is, whatever the script sets it to."   \
    }

/* The rows of @member, an LhOutputOptions of @Options. */
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
        .description = "File to write the result to; default -, standard output. Its ending "      \
                       "chooses the format, if --format does not.",                                \
        .placeholder = "FILE", .names = "files"                                                    \
    }
#define LH_OPTION_FIGURE(Options, member, text)                                                    \
    {                                                                                              \
        .name = "figure", .category = LH_ABOUT_FILES, .type = LH_FIELD_STRING,                     \
        .offset = offsetof(Options, member), .flags = LH_FIELD_WRITTEN | LH_COMMAND_FIGURE,        \
        .description = (text), .placeholder = "FILE", .names = "files"                             \
    }
/* A file that is written: the result, or one beside it. */
#define LH_OPTION_WRITES(Options, about, key, member, text)                                        \
    {                                                                                              \
        .name = (key), .category = (about), .type = LH_FIELD_STRING,                               \
        .offset = offsetof(Options, member), .flags = LH_FIELD_WRITTEN, .description = (text),     \
        .placeholder = "FILE", .names = "files"                                                    \
    }
/* A GPtrArray of char *: files that are read, @most of them. */
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
        .description = "On processors fast kernels (cpu, default), or slow ones that compute in "  \
                       "fp64 (reference); on GPUs longhaul's own (builtin, default), or "          \
                       "attention by cuDNN (cudnn)."                                               \
    }
#define LH_OPTION_BOOTSTRAP(Options, member, text)                                                 \
    {                                                                                              \
        .name = "bootstrap", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_CHOICE,                \
        .offset = offsetof(Options, member), .flags = LH_COMMAND_HOW, .choices = lh_control_names, \
        .description = (text)                                                                      \
    }
/* An LhTime; 0 if it is not given. */
#define LH_OPTION_DEADLINE(Options, member, text)                                                  \
    {                                                                                              \
        .name = "deadline", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_UNIT,                   \
        .unit = LH_UNIT_TIME, .flags = LH_FIELD_SECONDS | LH_COMMAND_HOW,                          \
        .offset = offsetof(Options, member), .min = 1e-3, .max = LH_DEADLINE_S_MAX,                \
        .description = (text)                                                                      \
    }
#define LH_DEADLINE_S_MAX 1e6

/* A uint64_t; 0 if it is not given: as the cores and the memory allow. @what is done at once. */
#define LH_OPTION_JOBS(Options, member, what)                                                      \
    {                                                                                              \
        .name = "jobs", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_UINT,                       \
        .offset = offsetof(Options, member), .min = 1, .max = LH_JOBS_MAX,                         \
        .flags = LH_COMMAND_HOW | LH_COMMAND_OWN,                                                  \
        .description = what " at once; default: one for each core that the process may use, if "   \
                            "memory suffices. The result does not depend on it."                   \
    }
#define LH_JOBS_MAX 1024

/* An LhTime; 0 if it is not given: see lh_run_time_check. */
#define LH_OPTION_MAX_WORK(Options, member)                                                        \
    {                                                                                              \
        .name = "max-work", .category = LH_ABOUT_RUNNING, .type = LH_FIELD_UNIT,                   \
        .unit = LH_UNIT_TIME, .flags = LH_COMMAND_HOW, .offset = offsetof(Options, member),        \
        .min = 1e-3, .max = LH_MAX_WORK_S,                                                         \
        .description = "Refuse what takes longer than this on one core, as estimated before it "   \
                       "begins; default 86400s."                                                   \
    }
#define LH_MAX_WORK_S 8e6

/* Whether an option names a file, rather than nothing or standard output. */
bool lh_command_is_file(const char *path);

/* "here" of "/tmp/here.json"; @fallback where there is no file. Caller frees. */
char *lh_command_base_name(const char *path, const char *fallback);

/* Writes a command's result where the command line wants it. */
bool lh_command_write(const LhOutputOptions *to, const GString *text, GError **error);

/* Likewise; a result that was saved is compared with it instead. */
bool lh_command_finish(const LhCommandLine *line, const LhOutputOptions *to, const GString *text,
                       GError **error);

/* For commands of one program: refuses a line (LH_ERROR_USAGE) that, with its scenario, does not
 * name exactly one schedule or schedule file. */
bool lh_command_check_program(const LhCommandLine *line, GError **error);

LhStamp lh_command_stamp(const LhCommandLine *line);

/* Prints what is read of the configuration, and what not, if there is one: what
 * lh_describe_config() says, as every command does. */
void lh_command_warn_config(const LhCommandLine *line);

/* Refuses --provenance (LH_ERROR_USAGE) in a format that has no place for it. */
bool lh_command_check_provenance(bool provenance, int format, GError **error);

/* Reads what @option is, "10%" or "0.1", as a share of at most 1, more than 0 or from @zero on.
 * LH_ERROR_USAGE; @share is left alone then. */
bool lh_command_share(const char *option, const char *text, bool zero, double *share,
                      GError **error);

/* The index of the kernel set that --kernels names, 0 if it is NULL. LH_ERROR_USAGE if @device has
 * no such set. */
bool lh_command_kernels(const char *name, const LhRunDevice *device, uint32_t *kernel_set,
                        GError **error);
