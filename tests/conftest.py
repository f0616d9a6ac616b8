"""Property tests have no deadline: a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("nsightpy", deadline=None)
settings.load_profile("nsightpy")
